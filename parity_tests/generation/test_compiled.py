"""Generation by a compiled step: the tokens are the same, and one program serves every step."""

from typing import Any

import jax
import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from parity_tests.generation.test_generate import BARE, IDS, KEY_MASK, LENGTHS, M, generate
from parity_tests.panels.test_decoder import build
from parity_tests.support.panels import JAX, TORCH, both_panels, to_numpy

B, T = IDS.shape


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """The tokens of a model that is not compiled."""
    return generate(TORCH, build(TORCH, BARE), key_mask=KEY_MASK).tokens


@both_panels
def test_a_step_is_compiled_once_and_chooses_the_same_tokens(panel, expected):
    model, count = build(panel, BARE), CompileCounterWithBackend("aot_eager")
    choose = panel.functional.choose_token

    def read(ids: Any, key_mask: Any) -> tuple[Any, Any]:
        prompt = model(ids, key_mask=key_mask, cache=model.new_cache(B, T + M))
        return choose(prompt.logits[np.arange(B), np.array(LENGTHS) - 1]), prompt.cache

    def step(token: Any, cache: Any) -> tuple[Any, Any]:
        if panel is JAX:
            count.frame_count += 1
        result = model(token[:, None], cache=cache)
        return choose(result.logits[:, 0]), result.cache

    if panel is JAX:
        read, compiled = jax.jit(read), jax.jit(step)
    else:
        torch.compiler.reset()
        compiled = torch.compile(step, backend=count, fullgraph=True)
    with panel.wide(), torch.no_grad():
        token, cache = read(panel.array(IDS), panel.array(KEY_MASK))
        tokens = [to_numpy(token)]
        for _ in range(1, M):
            token, cache = compiled(token, cache)
            tokens.append(to_numpy(token))
    np.testing.assert_array_equal(np.stack(tokens, -1), expected)
    assert count.frame_count == 1


def test_generate_calls_a_compiled_torch_model(expected):
    model, count = build(TORCH, BARE), CompileCounterWithBackend("aot_eager")
    torch.compiler.reset()
    model.compile(backend=count, fullgraph=True, dynamic=False)
    for _ in range(2):
        found = generate(TORCH, model, key_mask=KEY_MASK).tokens
        np.testing.assert_array_equal(found, expected)
        assert count.frame_count == 2, "the prompt's shape and the step's"


def test_generate_is_compiled_whole_in_jax(expected):
    model, traces = build(JAX, BARE), []

    def continued(ids: Any, key_mask: Any) -> Any:
        traces.append(ids)
        return JAX.package.generate(model, ids, max_new_tokens=M, key_mask=key_mask).tokens

    compiled = jax.jit(continued)
    np.testing.assert_array_equal(JAX.run(compiled, IDS, KEY_MASK), expected)
    other = JAX.run(compiled, IDS[::-1].copy(), KEY_MASK[::-1].copy())
    np.testing.assert_array_equal(other, expected[::-1])
    assert len(traces) == 1
