"""The JSON reader takes what Python's own takes, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.formats.json import JsonReader, parse_json, read_json
from diptych.spec import CheckpointError

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES, st.sampled_from([None, 1]))
def test_any_json_is_skipped_to_its_end(value, indent):
    text = json.dumps(value, indent=indent, allow_nan=False)
    reader = JsonReader(f" {text} ")
    reader.skip()
    reader.end()
    broken = JsonReader(text + "]")
    broken.skip()
    with pytest.raises(ValueError, match="the end expected"):
        broken.end()


@given(st.text(alphabet='{}[]:,"\\ua0123456789.eE+-truefalsn \n', max_size=12))
def test_any_text_is_json_or_refused_as_python_does(text):
    try:
        json.loads(text, parse_constant=int)
        valid = True
    except ValueError:
        valid = False
    reader = JsonReader(text)
    try:
        reader.skip()
        reader.end()
    except ValueError:
        assert not valid or "{" in text  # a key twice is valid to Python
    else:
        assert valid


@pytest.mark.parametrize("text", ["1.0", "1e3", "01", "-", "1" * 20, "true", '"1"', ""])
def test_what_is_no_short_integer_is_refused(text):
    assert not JsonReader(text).next_is_integer()
    with pytest.raises(ValueError, match="an integer expected"):
        JsonReader(text).integer()


@pytest.mark.parametrize("value", [0, -1, 10**18])
def test_an_integer_is_read(value):
    assert JsonReader(str(value)).integer() == value


@given(JSON_VALUES, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_a_value_is_what_python_reads(value, encoding):
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        data = json.dumps(value, allow_nan=False).encode(encoding)
    assert repr(parse_json(data)) == repr(json.loads(data))


@pytest.mark.parametrize("text", ["-0", "-0.0", "1e300", "1E-3", "9" * 40, "1.0e5", "true", "null"])
def test_a_number_has_the_type_and_value_that_python_gives_it(text):
    assert repr(parse_json(text.encode())) == repr(json.loads(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": [{"b": 1, "b": 1}]}', "key 'b' stands twice"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ('{"a": -1e400}', "-1e400 is beyond every float64"),
        ('{"a": ' + "1" * 5000 + "}", "a number of 5000 characters, over 1000"),
        ("{} {}", "the end expected"),
        ('{"a": "\n"}', "Invalid control character"),
        ('{"a": ' * 65 + "1" + "}" * 65, "nested deeper than 64"),
        ("[1]", "a JSON object expected, found list"),
        (b'{"a": "\xff"}', "invalid start byte"),
    ],
)
def test_what_is_no_json_object_is_refused_by_file(tmp_path, text, words):
    path = tmp_path / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CheckpointError) as caught:
        read_json(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
