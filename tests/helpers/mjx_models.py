"""Small models in which contact does something: XML strings."""

SPHERE = """<mujoco><option timestep="0.005" cone="{cone}" integrator="{integrator}" iterations="{iterations}"
  ls_iterations="20" tolerance="1e-14"/>
<worldbody><geom type="plane" size="2 2 .1"/>
<body pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1"/>
<site name="top" pos="0 0 0.1"/></body>
</worldbody></mujoco>"""

# Everything that makes a row: an equality, friction loss, a joint limit, a contact.
FINGER = """<mujoco><option timestep="0.005" cone="{cone}" integrator="{integrator}" iterations="30"
  ls_iterations="30" tolerance="1e-14"/>
<default><geom solimp="0 0.9 0.01" contype="0" conaffinity="0"/>
 <joint axis="0 1 0" damping="0.1" armature="0.01"/>
</default>
<worldbody>
 <body name="upper" pos="0 0 0.5"><joint name="upper" range="-30 0" limited="true"/>
  <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02" mass="0.5"/>
  <body name="lower" pos="0.2 0 0"><joint name="lower"/>
   <geom name="tip" type="capsule" fromto="0 0 0 0.2 0 0" size="0.02" mass="0.3"/>
   <site name="tip" pos="0.2 0 0"/>
 </body></body>
 <body name="wheel" pos="0.45 0 0.5"><joint name="wheel" frictionloss="0.05"/>
  <geom name="rim" type="sphere" size="0.08" mass="0.4"/></body>
 <body name="counter" pos="1 0 0.5"><joint name="counter"/><geom type="sphere" size="0.05" mass="0.2"/></body>
</worldbody>
<contact><pair geom1="tip" geom2="rim" condim="3" friction="0.7 0.7"/></contact>
<equality><joint joint1="wheel" joint2="counter" polycoef="0 1 0 0 0"/></equality>
<actuator><motor name="upper" joint="upper" gear="2" ctrlrange="-1 1" ctrllimited="true"/>
<motor name="lower" joint="lower"/></actuator>
<sensor><jointvel name="wheel_speed" joint="wheel"/></sensor>
</mujoco>"""

BODIES = """<mujoco><option timestep="0.005" iterations="{iterations}" ls_iterations="50" tolerance="1e-10"/>
<worldbody><geom type="plane" size="9 9 .1" contype="1" conaffinity="2"/>{bodies}</worldbody></mujoco>"""


def sphere(cone="pyramidal", integrator="Euler", iterations=30) -> str:
    return SPHERE.format(cone=cone, integrator=integrator, iterations=iterations)


def finger(cone="pyramidal", integrator="Euler") -> str:
    return FINGER.format(cone=cone, integrator=integrator)


def studded_body(contacts: int, iterations: int) -> str:
    """One free body on so many small spheres."""
    balls = "".join(
        f'<geom type="sphere" size="0.02" mass="0.1" pos="{0.05 * (i % 16)} {0.05 * (i // 16)} 0" '
        'contype="2" conaffinity="1"/>'
        for i in range(contacts)
    )
    return BODIES.format(iterations=iterations, bodies=f'<body pos="0 0 0.0195"><freejoint/>{balls}</body>')


# In `finger`: the tip 1 mm inside the wheel, the upper joint past its limit, the wheel slipping.
FINGER_QPOS = (0.002, 0.3845, 0.1, 0.1)
FINGER_QVEL = (0.3, -0.5, 0.4, 0.4)
FINGER_CONTROL = (0.5, 0.3)
