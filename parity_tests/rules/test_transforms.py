"""Transforms move bytes, know their inverse, and say their outputs without data."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.convert.layouts.linen import Kernel
from diptych.rules import (
    Chain,
    Copy,
    Each,
    Join,
    Keep,
    Permute,
    Split,
    Stack,
    Tie,
    Transpose,
    Unstack,
)
from diptych.tensors.bits import TensorSpec, bit_view, contiguous

DTYPES = [
    np.dtype(dtype)
    for dtype in (
        np.bool_,
        np.int8,
        np.uint16,
        np.int64,
        np.float16,
        np.float32,
        np.float64,
        np.complex128,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
    )
]
LAYOUTS = ("plain", "transposed", "strided", "reversed", "broadcast")
TRAP = [[0, 3], [1, 4], [2, 5]]


@st.composite
def arrays(draw, shape):
    """An array of random bits (NaN payloads among them) in any dtype and memory layout."""
    dtype, layout = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(LAYOUTS))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def bits(wanted):
        count = int(np.prod(wanted, dtype=int)) * dtype.itemsize
        raw = random.integers(0, 2 if dtype == np.bool_ else 256, count, dtype=np.uint8)
        return raw.view(dtype).reshape(wanted)

    if layout == "transposed":
        return bits(shape[::-1]).T
    if layout == "strided" and shape:
        return bits((*shape[:-1], 2 * shape[-1]))[..., ::2]
    if layout == "reversed" and shape:
        return bits(shape)[::-1]
    if layout == "broadcast" and shape:
        return np.broadcast_to(bits((1, *shape[1:])), shape)
    return bits(shape)


@st.composite
def cases(draw):
    """A transform with inputs that fit it."""
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank)))
    kinds = ["keep", "transpose", "stack", "tie", "split", "permute", "chain", "each", "kernel"]
    kind = draw(st.sampled_from(kinds))
    if kind == "keep" or rank == 0:
        return Keep(), [draw(arrays(shape))]
    axis = draw(st.integers(-rank, rank - 1))
    if kind == "transpose":
        return Transpose(tuple(draw(st.permutations(range(rank))))), [draw(arrays(shape))]
    if kind == "kernel":
        return Kernel(draw(st.booleans())), [draw(arrays(shape if rank > 1 else (2, 3)))]
    if kind == "each":
        parts = (Transpose(tuple(draw(st.permutations(range(rank))))), Keep())
        return Each(parts), [draw(arrays(shape)), draw(arrays(shape[::-1]))]
    if kind == "permute":
        order = tuple(draw(st.permutations(range(shape[axis]))))
        return Permute(order, axis), [draw(arrays(shape))]
    if kind == "stack":
        array = draw(arrays(shape))
        return Stack(3, draw(st.integers(-rank - 1, rank))), [array, array[...], array.copy()]
    if kind == "tie":
        array = draw(arrays(shape))
        return Tie(2), [array, array.copy()]
    if draw(st.booleans()):
        parts = draw(st.integers(1, 3))
        sized = (*shape[: axis % rank], parts * shape[axis], *shape[axis % rank + 1 :])
        split = Split(parts, axis)
    else:
        sizes = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
        sized = (*shape[: axis % rank], sum(sizes), *shape[axis % rank + 1 :])
        split = Split(sizes, axis)
    if kind == "split":
        return split, [draw(arrays(sized))]
    order = tuple(draw(st.permutations(range(rank))))
    given_shape = tuple(sized[order.index(place)] for place in range(rank))
    return Chain((Transpose(order), split)), [draw(arrays(given_shape))]


def same_bits(a, b):
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


@settings(max_examples=300, deadline=None)
@given(cases())
def test_there_and_back_is_bitwise_equal(case):
    transform, inputs = case
    outputs = transform.apply(inputs)
    specs = [TensorSpec(x.dtype.name, x.shape) for x in inputs]
    assert transform.outputs(specs) == [TensorSpec(x.dtype.name, x.shape) for x in outputs]
    back = transform.inverse.apply(outputs)
    assert len(back) == len(inputs)
    assert all(same_bits(x, y) for x, y in zip(back, inputs, strict=True))
    assert transform.inverse.inverse == transform


@pytest.mark.parametrize(
    "transform",
    [Keep(), Tie(1), Copy(2), Split(1), Split((3,)), Join(1), Permute((0, 1, 2)), Chain(())],
)
def test_transposed_view_comes_out_in_logical_order(transform):
    view = np.arange(6).reshape(2, 3).T
    assert transform.apply([view])[0].tolist() == TRAP


@pytest.mark.parametrize(
    ("transform", "inputs", "expected"),
    [
        (Transpose(), [[[0, 1, 2], [3, 4, 5]]], [[[0, 3], [1, 4], [2, 5]]]),
        (Permute((2, 0, 1)), [[10, 11, 12]], [[12, 10, 11]]),
        (Permute((1, 0), 1), [[[1, 2], [3, 4]]], [[[2, 1], [4, 3]]]),
        (Split(2), [[1, 2, 3, 4]], [[1, 2], [3, 4]]),
        (Split((1, 2), 1), [[[1, 2, 3]]], [[[1]], [[2, 3]]]),
        (Join(2), [[1], [2]], [[1, 2]]),
        (Stack(2), [[1, 2], [3, 4]], [[[1, 2], [3, 4]]]),
        (Stack(2, 1), [[1, 2], [3, 4]], [[[1, 3], [2, 4]]]),
        (Unstack(2, 1), [[[1, 3], [2, 4]]], [[1, 2], [3, 4]]),
        (Copy(2), [[7]], [[7], [7]]),
        (Each((Transpose(), Keep())), [[[1, 2]], [[1, 2]]], [[[1], [2]], [[1, 2]]]),
        (Chain((Transpose(), Split(3))), [[[1, 2, 3], [4, 5, 6]]], [[[1, 4]], [[2, 5]], [[3, 6]]]),
    ],
)
def test_values(transform, inputs, expected):
    outputs = transform.apply([np.array(x, np.float32) for x in inputs])
    assert [x.tolist() for x in outputs] == expected


def test_convolution_kernels_move_their_axes():
    kernel = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    (moved,) = Transpose((2, 3, 1, 0)).apply([kernel])
    assert moved.shape == (4, 5, 3, 2)
    assert moved[1, 2, 0, 1] == kernel[1, 0, 1, 2]


def test_five_layers_stack_in_order_along_either_axis():
    layers = [np.full((2, 3), i) for i in range(5)]
    for axis in (0, 1):
        (stacked,) = Stack(5, axis).apply(layers)
        assert np.moveaxis(stacked, axis, 0)[:, 0, 0].tolist() == [0, 1, 2, 3, 4]
        assert [x.max() for x in Unstack(5, axis).apply([stacked])] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="needs 5 entries along axis 0"):
        Unstack(5, 0).apply([stacked])


@pytest.mark.parametrize("size", [1, 2])
def test_every_bit_pattern_of_small_dtypes_survives(size):
    patterns = np.arange(256**size, dtype=f"u{size}").reshape(16, -1)
    for dtype in (d for d in DTYPES if d.itemsize == size and d != np.bool_):
        values = patterns.view(dtype)
        for transform in (Transpose(), Permute(tuple(range(16))[::-1]), Split(4), Tie(1)):
            outputs = transform.apply([values])
            (back,) = transform.inverse.apply(outputs)
            assert np.array_equal(bit_view(back), patterns)


@pytest.mark.parametrize(
    ("transform", "shapes", "words"),
    [
        (Keep(), [(2,), (2,)], "one tensor expected, got 2"),
        (Transpose(), [(2, 3, 4)], "needs rank 2"),
        (Permute((0, 1)), [(3,)], "needs 2 entries along axis 0"),
        (Split(2), [(3,)], "cannot be cut into 2 equal parts"),
        (Split((1, 1)), [(3,)], r"cannot be cut into \(1, 1\)"),
        (Split(2, 1), [(4,)], "has no axis 1"),
        (Join(2), [(1, 2), (1, 3)], "do not join"),
        (Join((1, 2)), [(2,), (1,)], "do not join"),
        (Join(2), [(1,)], "2 tensors expected, got 1"),
        (Stack(2), [(1,), (2,)], "cannot be stacked"),
        (Unstack(2), [(3, 1)], "needs 2 entries"),
        (Tie(2), [(1,), (2,)], "different shapes"),
        (Each((Keep(),)), [(1,), (1,)], "1 tensors expected, got 2"),
        (Each((Keep(), Transpose())), [(1,), (1,)], "needs rank 2"),
        (Kernel(), [(1,)], "is that of no kernel"),
        (Kernel(backward=True), [(1, 2, 3, 4, 5)], "is that of no kernel"),
        (Kernel(), [(1, 2), (1, 2)], "one tensor expected, got 2"),
    ],
)
def test_misfits_are_refused_with_and_without_data(transform, shapes, words):
    with pytest.raises(ValueError, match=words):
        transform.outputs([TensorSpec("F32", shape) for shape in shapes])
    with pytest.raises(ValueError, match=words):
        transform.apply([np.zeros(shape, np.float32) for shape in shapes])


@pytest.mark.parametrize("transform", [Join(2), Stack(2), Tie(2)])
def test_mixed_dtypes_are_refused(transform):
    with pytest.raises(ValueError, match="one dtype expected, got float16, float32"):
        transform.apply([np.zeros(2, np.float16), np.zeros(2, np.float32)])


def test_tied_copies_that_differ_in_one_bit_are_refused():
    zero = np.zeros(2_000_000, np.float32)
    other = zero.copy()
    other[-1] = -0.0
    with pytest.raises(ValueError, match="tied copies differ; to untie them, delete the one"):
        Tie(2).apply([zero, other])


@pytest.mark.parametrize("shape", [(3, 5), (70, 129), (0, 4), (1, 64), (64, 64)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.complex128])
def test_contiguous_copies_in_strips(shape, dtype):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for view in (array.T, array[::-1], array[:, ::2].T, array.T[::-1]):
        copy = contiguous(view)
        assert copy.flags.c_contiguous
        assert copy.dtype == dtype
        assert np.array_equal(copy, view)


def test_what_is_transposed_twice_is_not_copied():
    array = np.arange(6.0).reshape(2, 3)
    (twice,) = Chain((Transpose(), Transpose())).apply([array])
    assert np.shares_memory(twice, array)
