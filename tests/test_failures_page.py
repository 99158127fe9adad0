"""The programs of docs/failures.md run as printed, and print the codes that their comments name."""

import contextlib
import io
import re
from pathlib import Path

import optdyn as od
from optdyn._results import RESULT_NAMES

PAGE = Path(__file__).parent.parent / "docs" / "failures.md"


def test_every_program_says_what_the_page_says():
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    scope = {"__name__": "page"}
    exec(compile(programs[0], str(PAGE), "exec"), scope)
    said = []
    for program in programs[1:]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, str(PAGE), "exec"), scope)
        (promised,) = re.findall(r"# .*?(\w+)$", program.strip().splitlines()[-1])
        assert printed.getvalue().strip() == promised
        said.append(promised)
    assert sorted(said) == sorted(set(RESULT_NAMES) - {"successful"})


def test_every_code_has_a_heading():
    headings = re.findall(r"^## `(\w+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(set(RESULT_NAMES) - {"successful"})
    assert all(hasattr(od.RESULTS, name) for name in headings)
