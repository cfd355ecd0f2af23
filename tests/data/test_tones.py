import math

import pytest
import torch

from course_lib.data.tones import BANDS, HOP, LOWEST, NAMES, RATE, SEMITONES, Tones, filters, log_energies

CLEAR = Tones(noise=0.0, detuned=0.0)


def test_counts_lengths_and_gaps_are_from_the_least_to_the_most_and_all_labels_occur():
    tones = Tones(num_tones=(2, 4), length=(8, 11), gap=(0, 2))
    melodies = tones.batch(400, 0)
    assert melodies.num_labels.unique().tolist() == [2, 3, 4]
    real = torch.arange(4) < melodies.num_labels[:, None]
    assert (melodies.ends - melodies.begins)[real].unique().tolist() == [8, 9, 10, 11]
    gaps = melodies.begins - torch.cat([torch.zeros(400, 1).long(), melodies.ends[:, :-1]], dim=1)
    assert gaps[real].unique().tolist() == [0, 1, 2]
    assert melodies.labels[real].unique().tolist() == [*range(1, len(NAMES) + 1)] and not melodies.labels[~real].any()
    assert [len(labels) for labels in melodies.spoken()] == melodies.num_labels.tolist()


def test_shapes_fit_together_and_padding_is_silence():
    melodies = Tones(noise=1.0).batch(9, 1)
    assert melodies.frames.shape == (9, int(melodies.num_frames.max()), BANDS)
    assert melodies.waveform.shape == (9, HOP * melodies.frames.shape[1]) and melodies.waveform.abs().max() <= 1
    assert torch.equal(melodies.valid.sum(dim=1), melodies.num_frames)
    assert not melodies.frames[~melodies.valid].any() and melodies.frames[melodies.valid].any(dim=1).all()
    assert not any(
        wave[HOP * count :].any() for wave, count in zip(melodies.waveform, melodies.num_frames, strict=True)
    )
    assert (melodies.ends.gather(1, melodies.num_labels[:, None] - 1)[:, 0] <= melodies.num_frames).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_tone_sounds_at_its_pitch_and_lights_up_the_band_of_it(name):
    melody = CLEAR.melody([name], length=40)
    begin, end = melody.begins[0, 0], melody.ends[0, 0]
    spectrum = torch.fft.rfft(melody.waveform[0, HOP * begin : HOP * end], n=RATE).abs()  # a value for each Hz
    pitch = LOWEST * 2 ** (SEMITONES[NAMES.index(name)] / 12)
    assert spectrum.argmax().item() == pytest.approx(pitch, abs=1)
    band = (SEMITONES[NAMES.index(name)] + 2) / 16 * (BANDS - 1)
    loudest = melody.frames[0, begin + 5 : end - 5].mean(dim=0).argmax().item()
    assert loudest == pytest.approx(band, abs=1)


def test_silence_lies_between_tones_even_between_equal_ones_without_a_gap():
    melody = CLEAR.melody(["C", "C", "c"], length=16, gap=0)
    energy = melody.waveform[0].unflatten(0, (-1, HOP)).square().mean(dim=1)
    for place in (0, 16, 32):
        assert energy[place] < 0.3 * energy[place + 8]
    with_gap = CLEAR.melody(["C", "E"], length=10, gap=6)
    assert not with_gap.waveform[0, : 6 * HOP].any() and not with_gap.waveform[0, 16 * HOP : 22 * HOP].any()
    assert with_gap.begins.tolist() == [[6, 22]] and with_gap.ends.tolist() == [[16, 32]]


def test_noise_has_the_deviation_that_is_asked_for_and_drowns_nothing_else():
    clear, noisy = CLEAR.batch(20, 2), Tones(noise=0.5, detuned=0.0).batch(20, 2)
    assert torch.equal(clear.labels, noisy.labels) and torch.equal(clear.begins, noisy.begins)
    sounding = torch.arange(clear.waveform.shape[1]) < HOP * clear.num_frames[:, None]
    difference = (noisy.waveform - clear.waveform)[sounding]
    assert difference.std().item() == pytest.approx(0.15, rel=0.02) and abs(difference.mean().item()) < 0.01


def test_detuning_moves_a_tone_by_so_many_semitones_at_most():
    tones = Tones(num_tones=(1, 1), length=(100, 100), gap=(0, 0), noise=0.0, detuned=0.3)
    melodies = tones.batch(60, 0)
    hertz = torch.fft.rfft(melodies.waveform, n=4 * RATE).abs().argmax(dim=1) / 4
    written = torch.tensor(SEMITONES)[melodies.labels[:, 0] - 1]
    off = 12 * (hertz / LOWEST).log2() - written
    assert off.abs().max() < 0.32 and off.max() > 0.2 and off.min() < -0.2


def test_filters_share_each_frequency_of_the_scale_among_neighbours():
    hertz = torch.linspace(0, RATE / 2, len(filters()))
    inside = (hertz > LOWEST * 2 ** (-2 / 12)) & (hertz < LOWEST * 2 ** (14 / 12))
    torch.testing.assert_close(filters()[inside].sum(dim=1), torch.ones(int(inside.sum())))
    assert not filters()[hertz < 400].any() and (filters() > 0).any(dim=0).all()


def test_energies_are_those_of_a_windowed_fourier_sum_written_out():
    wave = torch.randn(1, 8 * HOP, generator=torch.Generator().manual_seed(0))
    padded = torch.cat([torch.zeros(256), wave[0], torch.zeros(256)]).double()
    time = torch.arange(512).double()
    window = 0.5 - 0.5 * (2 * math.pi * time / 512).cos()
    piece = padded[3 * HOP : 3 * HOP + 512] * window
    angles = 2 * math.pi * time * torch.arange(257)[:, None] / 512
    energy = (piece * angles.cos()).sum(dim=1) ** 2 + (piece * angles.sin()).sum(dim=1) ** 2
    expected = ((energy @ filters().double() + 1e-2).log() + 1) / 2.5
    torch.testing.assert_close(log_energies(wave)[0, 3].double(), expected, rtol=0, atol=1e-4)


def test_frames_look_as_they_did():
    """Other machines may differ by rounding, not by more."""
    melodies = Tones().batch(2, 0)
    found = torch.stack([melodies.frames.mean(), melodies.frames.std(), melodies.frames[0, 20].max()])
    torch.testing.assert_close(found, torch.tensor([0.09607, 0.68473, 3.02613]), rtol=0, atol=3e-4)
