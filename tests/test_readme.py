"""The README's program runs as printed, and prints what its comments say."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_program_in_the_readme():
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, str(README), "exec"), {"__name__": "readme"})
    velocity, derivative = (float(line) for line in printed.getvalue().split())
    assert velocity == pytest.approx(0.85, abs=1e-4)
    assert derivative == pytest.approx(-0.5, abs=1e-2)


def test_the_commands_in_the_readme_exist():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^    make ([a-z-]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(targets) == {"demo", "test"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
