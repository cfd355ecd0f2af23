"""Melodies to be written down: tones of unknown length one after the other, in noise, as sound and as frames.

A small stand-in for speech: what is said is known, when it is said is not. All of it is a pure function of its seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.draws import generator, uniform_noise

NAMES = ("C", "D", "E", "F", "G", "A", "B", "c")  # label i + 1; 0 is CTC's blank
SEMITONES = (0, 2, 4, 5, 7, 9, 11, 12)  # above the first tone: a major scale
LOWEST = 523.25  # Hz, the C of the first tone
RATE = 8000  # samples in a second
HOP, WINDOW = 80, 512  # samples: a frame each 10 ms sees 64 ms
BANDS = 24  # numbers in a frame: filters from two semitones below the scale to two above it
LOUDEST = 0.3  # of a wave that can be played at -1 ... 1


class Melodies(NamedTuple):
    """N melodies, padded with silence and with label 0."""

    waveform: Float[Tensor, "N samples"]  # from -1 to 1, RATE samples a second: for the ear
    frames: Float[Tensor, "N T bands"]  # log energies, about 0 +- 1, a frame each 10 ms: for a model
    num_frames: Int[Tensor, " N"]
    labels: Int[Tensor, "N S"]  # from 1 on
    num_labels: Int[Tensor, " N"]
    begins: Int[Tensor, "N S"]  # frame at which each tone begins; no training needs it
    ends: Int[Tensor, "N S"]

    @property
    def valid(self) -> Bool[Tensor, "N T"]:
        """True at the frames of each melody."""
        return torch.arange(self.frames.shape[1]) < self.num_frames[:, None]

    def spoken(self) -> list[list[int]]:
        """The labels of each melody."""
        return [row[:count] for row, count in zip(self.labels.tolist(), self.num_labels.tolist(), strict=True)]


@dataclass(frozen=True, kw_only=True)
class Tones:
    """How melodies are drawn. Times are in frames of 10 ms; each pair is the least and the most.

    Raises ValueError for a pair in the wrong order, a tone of less than 8 frames (CTC needs a frame of 40 ms and one
    before it to tell a tone from the same one before), or a noise below 0.
    """

    num_tones: tuple[int, int] = (3, 8)
    length: tuple[int, int] = (8, 24)  # of a tone
    gap: tuple[int, int] = (0, 8)  # of silence before a tone
    detuned: float = 0.3  # semitones up or down at most, each tone for itself
    noise: float = 0.1  # standard deviation; a tone's loudness is drawn from 0.3 to 1 of LOUDEST

    def __post_init__(self):
        pairs = {"num_tones": (self.num_tones, 1), "length": (self.length, 8), "gap": (self.gap, 0)}
        for name, ((low, high), least) in pairs.items():
            if not least <= low <= high:
                raise ValueError(f"{name} must be (least, most) with {least} <= least <= most, got {(low, high)}")
        if self.noise < 0 or self.detuned < 0:
            raise ValueError(f"noise and detuned must be 0 or more, got {self.noise} and {self.detuned}")

    def batch(self, count: int, seed: int) -> Melodies:
        """So many melodies of a seed. Raises ValueError for a count below 1."""
        if count < 1:
            raise ValueError(f"a batch holds at least one melody, got count={count}")
        most = self.num_tones[1]
        draws = torch.rand(5, count, most, generator=generator("tones", seed), dtype=torch.float64)

        def whole(row: int, low: int, high: int) -> Int[Tensor, "N S"]:
            return low + (draws[row] * (high - low + 1)).long()

        pitch, loudness = draws[3], 0.3 + 0.7 * draws[4]
        labels, lengths, gaps = whole(0, 1, len(NAMES)), whole(1, *self.length), whole(2, *self.gap)
        chosen = torch.rand(count, generator=generator("how many tones", seed), dtype=torch.float64)
        num_labels = self.num_tones[0] + (chosen * (most - self.num_tones[0] + 1)).long()
        real = torch.arange(most) < num_labels[:, None]
        begins = (gaps + lengths).cumsum(dim=1) - lengths
        melody = sung(labels, begins, lengths, loudness * real, self.detuned * (2 * pitch - 1))
        num_frames = (begins + lengths).where(real, 0).amax(dim=1) + self.gap[1] // 2
        return finished(melody, self.noise, seed, labels * real, num_labels, num_frames, begins, begins + lengths)

    def melody(self, names: Sequence[str], *, length: int = 16, gap: int = 4, seed: int = 0) -> Melodies:
        """One melody of these tones, each so many frames long, after so many of silence.

        Raises ValueError for a name that is not in NAMES, or none at all.
        """
        if not names or set(names) - set(NAMES):
            raise ValueError(f"a melody is made of one or more of {', '.join(NAMES)}, got {list(names)}")
        labels = torch.tensor([[NAMES.index(name) + 1 for name in names]])
        lengths = torch.full_like(labels, length)
        begins = (lengths + gap).cumsum(dim=1) - length
        flat = torch.zeros(labels.shape, dtype=torch.float64)
        melody = sung(labels, begins, lengths, flat + 0.7, flat)
        ends = begins + lengths
        sizes = torch.tensor([len(names)]), ends[:, -1] + gap
        return finished(melody, self.noise, seed, labels, *sizes, begins, ends)


def sung(
    labels: Int[Tensor, "N S"],
    begins: Int[Tensor, "N S"],
    lengths: Int[Tensor, "N S"],
    loudness: Float[Tensor, "N S"],
    detuned: Float[Tensor, "N S"],
) -> Float[Tensor, "N samples"]:
    """Pure tones that come within 20 ms and die away, one after the other."""
    time = torch.arange(int((begins + lengths).max()) * HOP).expand(len(labels), -1).contiguous()
    tone = (torch.searchsorted(begins * HOP, time, right=True) - 1).clamp(min=0)  # the last one that has begun

    def now(values: Tensor) -> Tensor:
        return values.gather(1, tone)

    since = (time - now(begins * HOP)).double() / RATE  # seconds
    left = (now((begins + lengths) * HOP) - time).double() / RATE
    hertz = LOWEST * 2 ** ((torch.tensor(SEMITONES)[labels - 1] + detuned) / 12)
    rise_and_fall = torch.minimum(since / 0.02, left / 0.04).clamp(0, 1)
    return (LOUDEST * now(loudness) * rise_and_fall * torch.sin(2 * torch.pi * now(hertz) * since)).float()


def finished(melody: Tensor, noise: float, seed: int, labels: Tensor, *sizes_and_times: Tensor) -> Melodies:
    """The melodies with noise, cut to the longest of them, and their frames."""
    num_labels, num_frames, begins, ends = sizes_and_times
    samples = int(num_frames.max()) * HOP
    waveform = torch.zeros(len(melody), samples)
    waveform[:, : melody.shape[1]] = melody[:, :samples]
    waveform += uniform_noise(waveform.shape, LOUDEST * noise, generator("noise of tones", seed))
    waveform *= torch.arange(samples) < num_frames[:, None] * HOP
    frames = log_energies(waveform)
    frames *= (torch.arange(frames.shape[1]) < num_frames[:, None])[..., None]
    return Melodies(waveform.clamp(-1, 1), frames, num_frames, labels, num_labels, begins, ends)


def log_energies(waveform: Float[Tensor, "N samples"]) -> Float[Tensor, "N T bands"]:
    """A frame for each HOP samples: ln of the energy that each filter lets through, scaled to about 0 +- 1."""
    window = torch.hann_window(WINDOW)
    spectrum = torch.stft(waveform, WINDOW, HOP, window=window, center=True, pad_mode="constant", return_complex=True)
    energies = spectrum[..., :-1].abs().square().mT @ filters()  # the frame that begins after the end is left out
    return (energies + 1e-2).log().add(1.0).div(2.5)


@cache
def filters() -> Float[Tensor, "frequencies bands"]:
    """Triangles over the spectrum's frequencies, evenly spaced in pitch, each ending where its neighbours peak."""
    low, high = SEMITONES[0] - 2, SEMITONES[-1] + 2
    hertz = torch.linspace(0, RATE / 2, WINDOW // 2 + 1).clamp(min=1.0)
    position = (12 * (hertz / LOWEST).log2() - low) / (high - low) * (BANDS - 1)  # in bands
    return (1 - (position[:, None] - torch.arange(BANDS)).abs()).clamp(min=0)
