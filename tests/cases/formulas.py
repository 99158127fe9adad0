"""Formulas given as text, such as `0.01 u^2+0.1((th-pi)^2+0.1 om^2)`, evaluated without `eval`.

The text is made Python (powers, implied products, `sin th`, `|v|`), parsed by `ast`, and every node has to
be on a short list. `|v|` is the Euclidean norm, `(a, b)` and `[a, b]` are vectors, and `om+` is the
name `om_next`.
"""

import ast
import re
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|(.))")
_ELEMENTARY = ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "abs", "sum")
_FUNCTIONS = (*_ELEMENTARY, "norm", "norm_squared", "where")
_CONSTANTS = {"pi": float(np.pi)}
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_COMPARE = {ast.Gt: "greater", ast.GtE: "greater_equal", ast.Lt: "less", ast.LtE: "less_equal"}


class FormulaError(ValueError):
    """The text is not a formula of this small language."""


class Formula:
    """An expression; call it with the values of its names."""

    def __init__(self, text: str):
        self.text = text
        try:
            self.tree = ast.parse(_to_python(text), mode="eval").body
        except SyntaxError as error:
            raise FormulaError(f"{text!r} is not a formula: {error.msg}") from None
        self.names = _names(self.tree, text)

    def __call__(self, values: Mapping[str, Any], xp: Any = jnp) -> Any:
        """Value with NumPy or `jax.numpy`."""
        return _evaluate(self.tree, values, xp)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"


class Relation:
    """`left op right` with op one of =, >=, <=; `excess` is left - right."""

    def __init__(self, left: str, op: str, right: str):
        self.left, self.op, self.right = Formula(left), op, Formula(right)
        self.names = list(dict.fromkeys(self.left.names + self.right.names))

    def excess(self, values: Mapping[str, Any], xp: Any = jnp) -> Any:
        """left - right."""
        return self.left(values, xp) - self.right(values, xp)

    def violation(self, values: Mapping[str, Any]) -> float:
        """By how much it fails, in NumPy."""
        excess = np.asarray(self.excess(values, np))
        signed = {"=": np.abs(excess), ">=": -excess, "<=": excess}[self.op]
        return float(np.max(np.maximum(signed, 0)))


def relations(text: str) -> list[Relation]:
    """`a = b, c >= 0; 0 <= d` as a list (strict signs count as their closed versions)."""
    found = []
    for part in split(text):
        pieces = re.split(r"(>=|<=|==|=|>|<)", part)
        if len(pieces) != 3:
            raise FormulaError(f"{part!r} is not a relation between two expressions")
        left, op, right = pieces
        found.append(Relation(left, {"==": "=", ">": ">=", "<": "<="}.get(op, op), right))
    return found


def split(text: str) -> list[str]:
    """Parts between commas and semicolons outside of brackets."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char in ",;" and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [part for part in [*parts, current.strip()] if part]


def natural_order(names: list[str]) -> list[str]:
    """x2 before x10."""
    return sorted(names, key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)])


def lookup(name: str, values: Mapping[str, Any], zero_based: bool = False) -> Any:
    """The value of `name`, or the entry of the vector that it means (`u2` of u)."""
    if name in values:
        return values[name]
    match = re.fullmatch(r"(.*?[A-Za-z])(\d+)", name)
    if match and match[1] in values:
        return values[match[1]][int(match[2]) - (0 if zero_based else 1)]
    raise KeyError(name)


def _to_python(text: str) -> str:
    tokens = [_Token(*groups) for groups in _TOKEN.findall(text.strip())]
    return " ".join(_call_functions(_multiply(_bars(_next_values(tokens)))))


class _Token(str):
    """A piece of text and what it is."""

    kind: str

    def __new__(cls, number: str = "", name: str = "", symbol: str = ""):
        token = super().__new__(cls, number or name or symbol)
        token.kind = "number" if number else "name" if name else "symbol"
        return token


def _next_values(tokens: list[_Token]) -> list[_Token]:
    out: list[_Token] = []
    for i, token in enumerate(tokens):
        after = tokens[i + 1] if i + 1 < len(tokens) else ")"
        if token == "+" and out and out[-1].kind == "name" and after in (")", "*", "/", ",", "]", ";", "^"):
            out[-1] = _Token(name=f"{out[-1]}_next")
        else:
            out.append(token)
    return out


def _bars(tokens: list[_Token]) -> list[_Token]:
    out: list[_Token] = []
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token != "|":
            out.append(token)
        elif opened:
            if tokens[i + 1 : i + 3] == ["^", "2"]:  # differentiable where v = 0
                out[opened[-1]] = _Token(name="norm_squared")
                tokens[i + 1 : i + 3] = [_Token(symbol=""), _Token(symbol="")]
            opened.pop()
            out.append(_Token(symbol=")"))
        else:
            opened.append(len(out))
            out += [_Token(name="norm"), _Token(symbol="(")]
    return [token for token in out if token]


def _multiply(tokens: list[_Token]) -> list[_Token]:
    out: list[_Token] = []
    for token in tokens:
        before = out[-1] if out else _Token(symbol="(")
        ends = (
            before.kind == "number" or before == ")" or (before.kind == "name" and before not in _FUNCTIONS)
        )
        if ends and (token.kind != "symbol" or (token == "(" and before not in _FUNCTIONS)):
            out.append(_Token(symbol="*"))
        out.append(token)
    return out


def _call_functions(tokens: list[_Token]) -> list[str]:
    out: list[str] = []
    for i, token in enumerate(tokens):
        called = i > 0 and tokens[i - 1] in _FUNCTIONS and tokens[i - 1].kind == "name"
        if called and token.kind in ("name", "number"):
            out.append(f"({token})")
        else:
            out.append("**" if token == "^" else str(token))
    return out


def _names(tree: ast.expr, text: str) -> list[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        ):
            raise FormulaError(f"{text!r} calls something that is not on the list of functions")
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in _CONSTANTS:
            found.append((node.col_offset, node.id))
        allowed = (
            ast.BinOp | ast.UnaryOp | ast.Call | ast.Name | ast.Constant | ast.List | ast.Tuple | ast.Compare
        )
        if isinstance(node, ast.expr) and not isinstance(node, allowed):
            raise FormulaError(f"{text!r} uses {type(node).__name__}, which formulas may not")
    return list(dict.fromkeys(name for _, name in sorted(found)))


def _evaluate(node: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            if name not in values and name not in _CONSTANTS:
                raise FormulaError(f"no value is given for {name!r}")
            return values[name] if name in values else _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_evaluate(inner, values, xp)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _evaluate(inner, values, xp)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _binary(type(op), _evaluate(left, values, xp), _evaluate(right, values, xp))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return getattr(xp, _COMPARE[type(op)])(_evaluate(left, values, xp), _evaluate(right, values, xp))
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return xp.stack([xp.asarray(_evaluate(part, values, xp), dtype=float) for part in parts])
        case ast.Call(func=ast.Name(id="where"), args=[condition, yes, no]):
            return _where(condition, yes, no, values, xp)
        case ast.Call(func=ast.Name(id="norm" | "norm_squared" as name), args=[inner]):
            square = xp.sum(xp.asarray(_evaluate(inner, values, xp)) ** 2)
            return square if name == "norm_squared" else xp.sqrt(square)
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _ELEMENTARY:
            return getattr(xp, name)(_evaluate(inner, values, xp))
    raise FormulaError(f"{ast.dump(node)} is not part of the language of formulas")


def _binary(op: type, left: Any, right: Any) -> Any:
    if op is ast.Add:
        return left + right
    if op is ast.Sub:
        return left - right
    if op is ast.Mult:
        return left * right
    return left / right if op is ast.Div else left**right


def _where(condition: ast.expr, yes: ast.expr, no: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    """The branch that is not taken is evaluated at 1, so that it cannot put NaN into the derivative."""
    chosen = _evaluate(condition, values, xp)
    one = {name: xp.where(chosen, value, 1.0) for name, value in values.items()}
    other = {name: xp.where(chosen, 1.0, value) for name, value in values.items()}
    return xp.where(chosen, _evaluate(yes, one, xp), _evaluate(no, other, xp))
