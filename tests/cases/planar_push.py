"""Runner of quasi-static planar pushing."""

from typing import Any

import numpy as np

from cases import contact
from cases.bank import Case
from cases.checking import Findings, as_array, check


def run(case: Case) -> None:
    """One contact; twist, force and mode."""
    model = contact.planar_push(case.problem)
    force, world = as_array(model.outputs["contact_force"]), as_array(model.outputs["force"])

    def values(key: str, want: Any) -> Any:
        if key == "force_ratio_fy_over_fx":
            return world[1] / world[0]
        if key in ("domega_dyc", "domega_dxc"):
            return model.jacobian("omega", "contact")["xy".index(key[-2])]
        return model.outputs.get(key)

    def mode(want: str) -> None:
        limit = case.problem["mu"] * force[0]
        sticks = abs(force[1]) < limit * (1 - 1e-3)
        found = "stick" if sticks else "slide"
        assert found == ("slide" if want.startswith(("sl", "Sl")) else "stick"), f"mode {found}"

    findings = Findings("successful", [values, lambda key, want: model.derivative(key)], {"mode": mode})
    findings.rules["finite"] = lambda want: np.testing.assert_array_equal(np.isfinite(world), True)
    check(case, findings)
