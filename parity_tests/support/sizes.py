"""Sizes of the test data: small, prime where they may be, all different, so no swapped axis passes.

B batch   T query positions   S key positions   N query heads   K key/value heads
H head width   V value width   D model width = N H   F hidden width
"""

B, N, K, H, V = 2, 3, 3, 5, 7
GROUPED_N, GROUPED_K = 6, 3
D, F = N * H, 11
VOCAB, MAX_LEN, NUM_LABELS = 23, 17, 4

LENGTHS = {"T<S": (11, 13), "T>S": (13, 11), "T=1": (1, 13)}
EMPTY_LENGTHS = ((0, 13), (11, 0))
"""(T, S) of the attention cases."""
