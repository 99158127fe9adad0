"""The interactive page: a scene that moves, controls of time, charts. viser carries it to the browser."""

import threading
from typing import Any

import numpy as np

from optdyn.viz._bodies import Scene
from optdyn.viz._flat_scene import to_space
from optdyn.viz._page_charts import PageChart
from optdyn.viz._palette import rgb
from optdyn.viz._scene import record_scene

_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
_FOV = np.deg2rad(40.0)
# The longest arrow, and the radius of its shaft, as fractions of the scene.
_ARROW, _SHAFT = 0.3, 0.006
# Forces below this fraction of the largest one are not shown: on a central path none is zero.
_SMALL = 0.01
_CHART_PERIOD_S = 0.1  # while it plays; a chart is drawn anew whenever the present moves
_FRONT = 1.05  # arrows are this much nearer to the reader than the bodies


class Page:
    """What one server shows of one plan; every browser that looks at it sees the same instant."""

    def __init__(self, server: Any, scenario: Any, plan: Any, times: np.ndarray, facts: str = "") -> None:
        """`times` are those of the states in s, `facts` is what to say about the plan, in Markdown."""
        self._server = server
        self.times = np.asarray(times, dtype=float)
        self.scene: Scene = record_scene(scenario, np.asarray(plan.states, dtype=float))
        self._forces = [] if scenario.forces is None else list(scenario.forces(plan))
        self._charts = [PageChart(panel, float(self.times[-1])) for panel in scenario.panels(plan)]
        self._lock = threading.RLock()
        self._since_charts = 0.0
        self.now = 0.0
        self.playing = False
        self._set_stage(scenario, plan)
        self._add_bodies()
        self._add_arrows(scenario.plane)
        self._add_controls(scenario, facts)
        self._show(charts=True)

    @property
    def frame(self) -> int:
        """Index of the state that is shown."""
        return max(int(np.searchsorted(self.times, self.now + 1e-9, side="right")) - 1, 0)

    def toggle(self) -> None:
        """Play, from the start if this is the end; or pause."""
        with self._lock:
            self.playing = not self.playing
            if self.playing and self.now >= self.times[-1]:
                self.now = float(self.times[0])
            self.button.label = "Pause" if self.playing else "Play"
            self._show(charts=True)

    def seek(self, now: float) -> None:
        """Show the state of an instant in s."""
        with self._lock:
            self.now = float(np.clip(now, self.times[0], self.times[-1]))
            self._show(charts=True)

    def tick(self, elapsed: float) -> None:
        """Let `elapsed` seconds pass on the clock of the reader."""
        with self._lock:
            if not self.playing:
                return
            self.now += elapsed * float(self.speed.value)
            if self.now >= self.times[-1]:
                if self.repeat.value:
                    self.now = float(self.times[0])
                else:
                    self.now = float(self.times[-1])
                    self.toggle()
                    return
            self._since_charts += elapsed
            self._show(charts=self._since_charts >= _CHART_PERIOD_S)

    def _show(self, charts: bool) -> None:
        frame = self.frame
        self.slider.value = self.now  # calls `_scrubbed`, which knows that no reader did it
        with self._server.atomic():
            for body, (node, meshes) in zip(self.scene.bodies, self._nodes, strict=True):
                node.position, node.wxyz = body.positions[frame], body.attitudes[frame]
                node.visible = bool(body.visible[frame])
                for part, mesh in zip(body.parts, meshes, strict=True):
                    if part.forms is not None:
                        mesh.vertices = part.forms[frame].astype(np.float32)
            for i, force in enumerate(self._forces):
                self._show_arrow(i, force, frame)
        if charts:
            self._since_charts = 0.0
            for chart, handle in zip(self._charts, self._chart_handles, strict=True):
                handle.data = chart.data(self.now)

    def _show_arrow(self, i: int, force: Any, frame: int) -> None:
        arrow = self._arrows[i]
        value = self._values[i][frame - 1]
        size = float(np.linalg.norm(value))
        # The forces of a step belong to its end; the first state has none.
        shown = frame > 0 and bool(self.show_forces.value) and size > _SMALL * self._largest
        arrow.visible = shown and bool(np.isfinite(self._points[i][frame - 1]).all())
        if not arrow.visible:
            return
        way = value / self._largest * _ARROW * self.scene.size * float(self.force_scale.value)
        point = self._points[i][frame - 1]
        ends = [point - way, point] if force.ends else [point, point + way]
        arrow.points = np.array([ends], dtype=np.float32)
        arrow.head_length = float(min(8 * _SHAFT * self.scene.size, 0.6 * np.linalg.norm(way)))

    def _set_stage(self, scenario: Any, plan: Any) -> None:
        server, scene = self._server, self.scene
        variant = f" ({scenario.variant})" if scenario.variant else ""
        self.title = f"{scenario.name}{variant}"
        server.gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
        server.gui.main_panel.dock_right()
        server.gui.set_panel_label(self.title)
        server.scene.set_up_direction("+z")
        middle = (scene.low + scene.high) / 2
        distance = 0.5 * float(np.linalg.norm(scene.high - scene.low)) / np.tan(_FOV / 2)
        camera = server.initial_camera
        camera.fov = float(_FOV)
        camera.look_at = middle
        camera.position = middle + 1.05 * distance * scene.towards
        camera.near, camera.far = distance / 100, distance * 100

    def _add_bodies(self) -> None:
        self._nodes = []
        for body in self.scene.bodies:
            path = f"/bodies/{body.name}"
            node = self._server.scene.add_frame(path, show_axes=False)
            meshes = []
            for k, part in enumerate(body.parts):
                mesh = part.mesh
                vertices = mesh.vertices if part.forms is None else part.forms[0]
                handle = self._server.scene.add_mesh_simple(
                    f"{path}/{k + 1}",
                    vertices.astype(np.float32),
                    mesh.faces.astype(np.uint32),
                    color=rgb(part.color),
                    opacity=None if part.opacity == 1 else part.opacity,
                    flat_shading=not mesh.smooth,
                )
                meshes.append(handle)
            self._nodes.append((node, meshes))

    def _add_arrows(self, plane: str) -> None:
        front = _FRONT * self.scene.front
        self._points = [to_space(np.asarray(force.points, float), plane) + front for force in self._forces]
        self._values = [to_space(np.asarray(force.values, float), plane) for force in self._forces]
        sizes = [np.linalg.norm(values, axis=1) for values in self._values]
        finite = np.concatenate([size[np.isfinite(size)] for size in sizes] or [np.zeros(0)])
        self._largest = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
        shaft = _SHAFT * self.scene.size
        self._arrows = [
            self._server.scene.add_arrows(
                f"/forces/{force.label}",
                np.zeros((1, 2, 3), np.float32),
                rgb(force.color),
                shaft_radius=shaft,
                head_radius=2.5 * shaft,
                head_length=8 * shaft,
                visible=False,
            )
            for force in self._forces
        ]

    def _add_controls(self, scenario: Any, facts: str) -> None:
        gui = self._server.gui
        first, last = float(self.times[0]), float(self.times[-1])
        gui.add_markdown(f"{scenario.description}.\n\n{facts}".strip())
        self.button = gui.add_button("Play")
        self.slider = gui.add_slider("Time [s]", first, last, (last - first) / (len(self.times) - 1), first)
        self.speed = gui.add_dropdown("Speed", _SPEEDS, initial_value="1")
        self.repeat = gui.add_checkbox("Repeat", initial_value=True)
        has_forces = bool(self._forces)
        self.show_forces = gui.add_checkbox("Forces", initial_value=True, visible=has_forces)
        self.force_scale = gui.add_slider("Length of arrows", 0.2, 3.0, 0.1, 1.0, visible=has_forces)
        if has_forces:
            gui.add_markdown(f"Longest arrow: {self._largest:.3g} N")
        self._chart_handles = [gui.add_uplot(chart.data(first), **chart.options()) for chart in self._charts]
        self.button.on_click(lambda event: self.toggle())
        self.slider.on_update(self._scrubbed)
        for handle in (self.show_forces, self.force_scale):
            handle.on_update(lambda event: self.seek(self.now))

    def _scrubbed(self, event: Any) -> None:
        if event.client is not None:
            self.seek(self.slider.value)
