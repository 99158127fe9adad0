"""Laws of a planar mechanism in contact, recomputed in NumPy from a reference."""

import numpy as np


def check_planar_contact(reference, x_next, outputs, balance, *, h, kappa):
    """Gaps, cones, dissipation and momentum of steps.

    `reference` has FRICTION, `gaps(q)` and `slip(q, v)`; the first gaps carry the friction. What
    `balance(i, impulse, friction)` returns for step i, the sum of its impulses, is zero on the motion.
    """
    impulse, friction, limit = (
        np.asarray(outputs[name]) for name in ("impulse", "friction_impulse", "friction_limit")
    )
    np.testing.assert_allclose(limit, reference.FRICTION * impulse[:, : limit.shape[1]], atol=1e-8)
    assert np.all(np.abs(friction) <= limit)
    for i, (q1, q2) in enumerate(zip(*np.split(x_next, 2, axis=1), strict=True)):
        gap = reference.gaps(q2)
        assert gap.min() >= -1e-6
        assert np.abs(gap * impulse[i] - kappa).max() <= 1e-6
        assert np.abs(balance(i, impulse[i], friction[i])).max() <= 1e-8
        slip = reference.slip(q2, (q2 - q1) / h)
        assert (friction[i] * slip).max() <= 1e-12
        assert (-friction[i] * slip - limit[i] * np.abs(slip)).min() >= -kappa
