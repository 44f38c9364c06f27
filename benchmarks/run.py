"""Print every timing beside its peer: ``python -m benchmarks.run``."""

from benchmarks import jax_runner, torch_runner
from benchmarks.workloads import Attention, Calls, median_seconds


def main() -> None:
    """Time both panels and print medians and ratios to the stock layers."""
    print("| workload | panel | ours | stock | ours / stock |\n|---|---|---|---|---|")
    for panel, runner in (("torch", torch_runner), ("jax", jax_runner)):
        _row("attention 4 x 256 x 384, forward", panel, runner.attention(Attention()))
        _row("the same, with weights", panel, runner.attention_with_weights(Attention()))
        _row("the same, forward and backward", panel, runner.attention_gradient(Attention()))
        _row("MiniLM's encoder, 8 x 128 tokens, forward", panel, runner.minilm())


def _row(workload: str, panel: str, calls: Calls) -> None:
    seconds = median_seconds(calls)
    ours, stock = seconds["ours"], seconds["stock"]
    columns = (workload, panel, f"{ours * 1e3:.2f} ms", f"{stock * 1e3:.2f} ms", ours / stock)
    print("| {} | {} | {} | {} | {:.2f} |".format(*columns))


if __name__ == "__main__":
    main()
