"""The codes of dtypes agree with the official library and with torch."""

import numpy as np
import pytest
import torch

from diptych.formats.torch_pickle.globals import STORAGE_DTYPES, TORCH_DTYPES
from diptych.tensors.dtypes import CODES, code_of, item_size, numpy_dtype

from ..support.special_values import every_bit_pattern


@pytest.mark.parametrize("code", CODES)
def test_a_code_and_its_dtype_say_the_same(code):
    dtype = numpy_dtype(code)
    assert code_of(dtype) == code
    assert code_of(dtype.newbyteorder(">")) == code
    assert item_size(code) == dtype.itemsize


@pytest.mark.parametrize(("name", "code"), TORCH_DTYPES.items())
def test_a_torch_dtype_has_the_size_of_its_code(name, code):
    assert getattr(torch, name).itemsize == item_size(code)


@pytest.mark.parametrize(("name", "code"), TORCH_DTYPES.items())
def test_a_bit_pattern_is_the_same_number_to_torch(name, code):
    values = every_bit_pattern(code)
    wide = "complex128" if code in ("C64", "C128") else "float64"
    to_torch = torch.from_numpy(values.view(np.uint8)).view(getattr(torch, name))
    with np.errstate(invalid="ignore"):  # signalling NaNs are among the patterns
        numbers = values.astype(wide)
    np.testing.assert_array_equal(numbers, to_torch.to(getattr(torch, wide)).numpy())


def test_a_torch_storage_class_has_the_dtype_of_its_code():
    classes = torch.storage._dtype_to_storage_type_map()
    official = {name: str(dtype).removeprefix("torch.") for dtype, name in classes.items()}
    carried = {name: TORCH_DTYPES.get(dtype) for name, dtype in official.items()}
    assert {name: code for name, code in carried.items() if code} == STORAGE_DTYPES


def test_every_code_can_be_written_for_torch():
    assert set(TORCH_DTYPES.values()) == set(CODES)


@pytest.mark.parametrize("code", ["F4", "f32", "", "float32"])
def test_an_unknown_code_is_refused(code):
    with pytest.raises(ValueError, match=r"is not one of BOOL, U8"):
        numpy_dtype(code)


@pytest.mark.parametrize("dtype", ["O", "U3", "S3", "M8[s]", "f4,i4"])
def test_a_dtype_without_a_code_is_refused(dtype):
    with pytest.raises(ValueError, match="is not one of bool"):
        code_of(np.dtype(dtype))
