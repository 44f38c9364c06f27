"""Checks of the input of encoders of images and audio, on tuples."""

from .sizes import Shape


def check_images(shape: Shape, num_channels: int, sides: tuple[int, int]) -> None:
    """Raise ValueError unless an input is images of the channels and size of the encoder."""
    if len(shape) < 3 or shape[-3:] != (num_channels, *sides):
        height, width = sides
        raise ValueError(
            f"images have shape {shape}, expected (..., {num_channels}, {height}, {width}): "
            f"num_channels={num_channels}, image_size={sides}"
        )


def check_patch_mask(*, mask_token: bool) -> None:
    """Raise ValueError if patches are to be replaced by a token that is not there."""
    if not mask_token:
        raise ValueError("patch_mask is given, but mask_token=False")


def check_spectrogram(shape: Shape, num_mel_bins: int, max_seq_len: int) -> None:
    """Raise ValueError unless an input is spectrograms of an even, not too large, length."""
    if len(shape) < 2 or shape[-2] != num_mel_bins:
        raise ValueError(f"features have shape {shape}, expected (..., {num_mel_bins}, frames)")
    frames = shape[-1]
    if frames < 2 or frames % 2:
        raise ValueError(f"features have {frames} frames, expected an even number of at least 2")
    if frames > 2 * max_seq_len:
        raise ValueError(
            f"features have {frames} frames, two a position, but max_seq_len={max_seq_len}"
        )
