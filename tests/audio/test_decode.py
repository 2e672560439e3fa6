"""Files of every kind, whole and broken."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import struct
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from as2d_cli.audio.decode import AudioFile, NotAudioError
from as2d_cli.audio.raw import RAW_SAMPLES, RawFormat
from as2d_cli.errors import As2dError
from tests.fakes import tone, write_wav


def _read(source: str | Path, stdin: bytes | None = None) -> tuple[NDArray[np.float32], list[str]]:
    with AudioFile(source, io.BytesIO(stdin) if stdin is not None else None) as audio:
        blocks = list(audio)
        return (np.concatenate(blocks) if blocks else np.zeros(0, np.float32)), audio.warnings


def _encoded(
    path: Path,
    codec: str,
    rate: int,
    layout: str = "mono",
    seconds: float = 3,
    options: dict[str, str] | None = None,
) -> Path:
    samples = tone(seconds, rate).astype(np.float32)
    channels = av.AudioLayout(layout).nb_channels
    with av.open(str(path), "w", options=options or {}) as container:
        stream: Any = container.add_stream(codec, rate=rate, layout=layout)
        stream.bit_rate = 64_000 * channels
        size = stream.codec_context.frame_size or 1024
        formats = stream.codec_context.codec.audio_formats or []
        name = formats[0].name if formats else "s16"
        resampler = av.AudioResampler(format=name, layout=layout, rate=rate, frame_size=size)
        packed = np.repeat(samples[:, None], channels, axis=1).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(packed, format="flt", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
        for source in (frame, None):
            for out in resampler.resample(source):
                container.mux(stream.encode(out))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("suffix", "codec", "rate", "layout"),
    [
        ("wav", "pcm_s16le", 16_000, "mono"),
        ("wav", "pcm_f32le", 44_100, "stereo"),
        ("wav", "pcm_s24le", 96_000, "mono"),
        ("wav", "pcm_u8", 8_000, "mono"),
        ("wav", "pcm_mulaw", 8_000, "mono"),
        ("wav", "pcm_s16le", 48_000, "7.1"),
        ("aiff", "pcm_s16be", 22_050, "mono"),
        ("au", "pcm_s16be", 16_000, "mono"),
        ("flac", "flac", 44_100, "stereo"),
        ("mp3", "libmp3lame", 44_100, "stereo"),
        ("ogg", "libopus", 48_000, "stereo"),
        ("opus", "libopus", 48_000, "mono"),
        ("m4a", "aac", 44_100, "7.1"),
        ("mp4", "aac", 44_100, "stereo"),
        ("webm", "libopus", 48_000, "stereo"),
        ("mkv", "flac", 16_000, "mono"),
        ("wma", "wmav2", 44_100, "stereo"),
        ("avi", "libmp3lame", 44_100, "stereo"),
        ("avi", "pcm_s16le", 16_000, "mono"),
    ],
)
def test_containers_and_codecs(
    tmp_path: Path, suffix: str, codec: str, rate: int, layout: str
) -> None:
    path = _encoded(tmp_path / f"x.{suffix}", codec, rate, layout)
    for samples, warnings in (_read(path), _read("-", path.read_bytes())):
        assert abs(len(samples) / 16_000 - 3) < 0.15
        middle = samples[16_000:32_000]
        assert np.sqrt(np.square(middle).mean()) == pytest.approx(0.3 / 2**0.5, rel=0.15)
        peak = np.abs(np.fft.rfft(middle)).argmax()
        assert peak == 440
        assert warnings == []


class _Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(1000, size or 0))


@pytest.mark.parametrize("options", [{}, {"movflags": "faststart"}, {"movflags": "empty_moov"}])
@pytest.mark.parametrize("suffix", ["mp4", "m4a", "mov"])
def test_mp4_out_of_a_pipe(tmp_path: Path, suffix: str, options: dict[str, str]) -> None:
    """Its index comes after the sound, before it, or in pieces."""
    path = _encoded(tmp_path / f"x.{suffix}", "aac", 44_100, options=options)
    for data in (path.read_bytes(), path.read_bytes()[:40_000]):
        path.write_bytes(data)
        try:
            samples, warnings = _read(path)
        except NotAudioError:
            with pytest.raises(NotAudioError, match="not an audio file: <stdin>"):
                list(AudioFile("-", _Pipe(data)))
            continue
        with AudioFile("-", _Pipe(data)) as audio:
            np.testing.assert_array_equal(np.concatenate(list(audio)), samples)
        assert audio.warnings == warnings


def test_no_room_for_an_mp4_out_of_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shutil.copyfileobj", full)
    data = _encoded(tmp_path / "x.mp4", "aac", 44_100).read_bytes()
    with pytest.raises(As2dError, match="cannot keep <stdin>, whose index comes last: No space"):
        AudioFile("-", _Pipe(data))


def test_content_and_not_the_suffix_decides(tmp_path: Path) -> None:
    wav = write_wav(tmp_path / "a.wav", tone(1))
    renamed = tmp_path / "a.mp3"
    renamed.write_bytes(wav.read_bytes())
    np.testing.assert_array_equal(_read(wav)[0], _read(renamed)[0])


def test_video_file_gives_its_sound_track(tmp_path: Path) -> None:
    path = tmp_path / "v.mkv"
    with av.open(str(path), "w") as container:
        video = container.add_stream("mpeg4", rate=5, width=64, height=48, pix_fmt="yuv420p")
        sound = container.add_stream("pcm_s16le", rate=16_000, layout="mono")
        for i in range(5):
            picture = av.VideoFrame(64, 48, "yuv420p")
            picture.pts = i
            container.mux(video.encode(picture))
        data = np.round(tone(1) * 32767).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(data, format="s16", layout="mono")
        frame.sample_rate, frame.pts = 16_000, 0
        container.mux(sound.encode(frame))
        container.mux(video.encode(None))
    assert len(_read(path)[0]) == 16_000


REFUSED = {
    "empty": (b"", "empty file: {}"),
    "text": (b"this is not audio\n", "not an audio file: {}"),
    "riff only": (b"RIFF\0\0\0\0WAVE", "not an audio file: {}"),
    "page": (b"<!DOCTYPE html><html></html>" * 50, "not an audio file: {}"),
    "zeros": (bytes(5000), "not an audio file: {}"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_by_name(tmp_path: Path, kind: str) -> None:
    data, message = REFUSED[kind]
    path = tmp_path / "x.wav"
    path.write_bytes(data)
    for source, stdin, name in ((path, None, str(path)), ("-", data, "<stdin>")):
        with pytest.raises(As2dError) as e:
            _read(source, stdin)
        assert str(e.value) == message.format(name)


def test_missing_directory_and_unreadable(tmp_path: Path) -> None:
    for name, message in (
        (tmp_path / "no", "no such file"),
        (tmp_path, "is a directory"),
        ("", "no such file: ''"),
        ("a\0b", "no such file"),
        (tmp_path / ("x" * 300), "cannot read"),
    ):
        with pytest.raises(As2dError, match=message):
            AudioFile(name)


def test_picture_is_no_audio(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("png", rate=1, width=16, height=16, pix_fmt="rgb24")
        container.mux(stream.encode(av.VideoFrame(16, 16, "rgb24")))
    with pytest.raises(As2dError, match="not an audio file"):
        _read(path)


def _header(size: int, *, riff: int = 0, rate: int = 16_000, channels: int = 1) -> bytes:
    block = 2 * channels
    fmt = struct.pack("<HHIIHH", 1, channels, rate, rate * block & 0xFFFFFFFF, block, 16)
    return (
        b"RIFF" + struct.pack("<I", riff) + b"WAVEfmt " + struct.pack("<I", 16) + fmt
        + b"data" + struct.pack("<I", size)
    )  # fmt: skip


PCM = np.round(tone(1) * 32767).astype("<i2").tobytes()


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x80000000, 0])
def test_lying_sizes_give_all_there_is(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(_header(size, riff=size) + PCM)
    for samples, warnings in (_read(path), _read("-", path.read_bytes())):
        assert (len(samples), warnings) == (16_000, [])
    with AudioFile(path) as audio:
        assert audio.duration is None


def test_truncated_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(_header(2 * len(PCM), riff=36 + 2 * len(PCM)) + PCM)
    for samples, warnings in (_read(path), _read("-", path.read_bytes())):
        assert len(samples) == 16_000
        assert warnings == ["truncated or damaged: 1.0 of 2.0 s could be read"]


@pytest.mark.parametrize(
    ("rate", "channels"), [(0, 1), (16_000, 0), (0xFFFFFFFF, 1), (10, 1), (16_000, 208)]
)
def test_impossible_headers_are_refused(tmp_path: Path, rate: int, channels: int) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(_header(len(PCM), rate=rate, channels=channels) + PCM)
    with pytest.raises(As2dError, match=f"impossible header in .*: {rate} Hz, {channels} channels"):
        _read(path)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_what_is_no_number_is_zero_and_told(tmp_path: Path, bad: float, rate: int) -> None:
    samples = tone(1, rate).astype("<f4")
    samples[100] = bad
    size = samples.nbytes
    fmt = struct.pack("<HHIIHH", 3, 1, rate, rate * 4, 4, 32)
    path = tmp_path / "x.wav"
    path.write_bytes(
        b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack("<I", 16) + fmt
        + b"data" + struct.pack("<I", size) + samples.tobytes()
    )  # fmt: skip
    found, warnings = _read(path)
    assert np.abs(found).max() < 0.5
    assert warnings == ["1 sample that is no number was replaced by zero"]


@pytest.mark.parametrize(("suffix", "codec"), [("flac", "flac"), ("mp3", "libmp3lame")])
def test_damaged_middle_keeps_both_sides(tmp_path: Path, suffix: str, codec: str) -> None:
    path = _encoded(tmp_path / f"x.{suffix}", codec, 44_100, seconds=10)
    data = bytearray(path.read_bytes())
    third = len(data) // 3
    data[third : 2 * third] = bytes(third)
    path.write_bytes(data)
    samples, warnings = _read(path)
    for side in (samples[8_000:24_000], samples[-24_000:-8_000]):
        assert np.abs(np.fft.rfft(side)).argmax() == 440
    assert warnings


def test_what_is_lost_of_a_container_without_time_stamps_is_told(tmp_path: Path) -> None:
    data = bytearray(_encoded(tmp_path / "x.avi", "pcm_s16le", 16_000, seconds=10).read_bytes())
    third = len(data) // 3
    data[third : 2 * third] = bytes(third)
    samples, warnings = _read("-", bytes(data))
    lost = f"truncated or damaged: {len(samples) / 16_000:.1f} of 10"
    assert len(warnings) == 1 and warnings[0].startswith(lost)


def test_many_holes_are_one_warning(tmp_path: Path) -> None:
    path = tmp_path / "x.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=16_000, layout="mono")
        for i in range(20):
            data = np.round(tone(0.1) * 32767).astype(np.int16)[None]
            frame = av.AudioFrame.from_ndarray(data, format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 16_000, i * 4800, Fraction(1, 16_000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    samples, warnings = _read(path)
    assert len(samples) == 19 * 4800 + 1600
    assert warnings == ["3.8 s in 19 places damaged or missing, taken as silence"]


def test_a_header_that_leads_beyond_any_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = _encoded(tmp_path / "x.caf", "pcm_s16le", 16_000)
    data = path.read_bytes()
    at = data.index(b"data")
    path.write_bytes(data[:at] + b"junk" + struct.pack(">Q", 1 << 60) + data[at:])
    with contextlib.suppress(NotAudioError):
        assert len(_read(path)[0]) <= 48_000
    assert capfd.readouterr() == ("", ""), "nothing of PyAV's"


def test_rate_change_in_the_stream(tmp_path: Path) -> None:
    parts = [
        _encoded(tmp_path / f"{rate}.mp3", "libmp3lame", rate).read_bytes()
        for rate in (44_100, 22_050)
    ]
    joined = tmp_path / "joined.mp3"
    joined.write_bytes(b"".join(parts))
    samples, _ = _read(joined)
    assert abs(len(samples) / 16_000 - 6) < 0.3
    for side in (samples[16_000:32_000], samples[-32_000:-16_000]):
        assert np.abs(np.fft.rfft(side)).argmax() == 440


def test_named_pipe(tmp_path: Path) -> None:
    wav = write_wav(tmp_path / "a.wav", tone(1)).read_bytes()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(wav,))
    writer.start()
    assert len(_read(fifo)[0]) == 16_000
    writer.join()


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    source=st.sampled_from(["wav", "flac", "mp3", "ogg"]),
)
def test_flipped_bytes_never_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, source: str
) -> None:
    good = _SMALL.get(source)
    if good is None:
        codecs = {"wav": "pcm_s16le", "flac": "flac", "mp3": "libmp3lame", "ogg": "libopus"}
        folder = tmp_path_factory.mktemp("fuzz")
        good = _encoded(folder / f"x.{source}", codecs[source], 48_000, seconds=0.3).read_bytes()
        _SMALL[source] = good
    broken = bytearray(good)
    for _ in range(data.draw(st.integers(1, 20))):
        # Most of what can go wrong is decided in the first bytes.
        limit = data.draw(st.sampled_from([60, len(broken)]))
        broken[data.draw(st.integers(0, limit - 1))] = data.draw(st.integers(0, 255))
    del broken[data.draw(st.integers(1, len(broken))) :]
    try:
        samples, _ = _read("-", bytes(broken))
    except As2dError as e:
        assert "\n" not in str(e)
    else:
        assert np.isfinite(samples).all()
        assert len(samples) < 60 * 16_000


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    tag=st.sampled_from([1, 1, 3, 0xFFFE]) | st.integers(0, 0xFFFF),
    channels=st.sampled_from([1, 2]) | st.integers(0, 0xFFFF),
    rate=st.sampled_from([8_000, 16_000]) | st.integers(0, 0xFFFFFFFF),
    bits=st.sampled_from([8, 16, 24, 32, 64]) | st.integers(0, 0xFFFF),
    size=st.sampled_from([0, 0xFFFFFFFF]) | st.integers(0, 0xFFFFFFFF),
    extension=st.binary(max_size=30),
    content=st.binary(max_size=4000),
)
def test_a_hostile_wav_header_never_raises_anything_else(
    tag: int, channels: int, rate: int, bits: int, size: int, extension: bytes, content: bytes
) -> None:
    block = channels * bits // 8 & 0xFFFF
    fmt = struct.pack("<HHIIHH", tag, channels, rate, rate * block & 0xFFFFFFFF, block, bits)
    data = b"RIFF" + struct.pack("<I", size) + b"WAVEfmt " + struct.pack("<I", 16 + len(extension))
    data += fmt + extension + b"data" + struct.pack("<I", size) + content
    with contextlib.suppress(As2dError):
        samples, _ = _read("-", data)
        assert np.isfinite(samples).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(RAW_SAMPLES),
    rate=st.sampled_from([1_000, 16_000, 44_100, 768_000]),
    channels=st.sampled_from([1, 2, 7, 8, 64]),
    content=st.binary(max_size=4000),
)
def test_any_bytes_are_raw_samples(kind: str, rate: int, channels: int, content: bytes) -> None:
    with contextlib.suppress(As2dError):  # less than a sample
        with AudioFile("-", io.BytesIO(content), RawFormat(kind, rate, channels)) as audio:
            samples = np.concatenate([np.zeros(0, np.float32), *audio])
        assert np.isfinite(samples).all()
        assert len(samples) <= 16 * len(content) + 100


_SMALL: dict[str, bytes] = {}


class _Failing(io.BytesIO):
    """A disk with a bad sector."""

    def __init__(self, data: bytes, at: int) -> None:
        super().__init__(data)
        self._at = at

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= self._at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)


@pytest.mark.parametrize("kind", ["wav", "flac", None])
def test_a_file_that_cannot_be_read(tmp_path: Path, kind: str | None) -> None:
    raw = RawFormat("s16le", 16_000, 1) if kind is None else None
    path = tmp_path / f"x.{kind}"
    if kind == "flac":
        _encoded(path, "flac", 16_000, "mono", seconds=20)
    else:
        write_wav(path, tone(20))
    data = path.read_bytes()
    with pytest.raises(As2dError, match=r"cannot read <stdin>: .+"):
        list(AudioFile("-", _Failing(data, 0), raw))
    with AudioFile("-", _Failing(data, len(data) // 2), raw) as audio:
        assert sum(map(len, audio)) > 5 * 16_000, "what came before it is kept"
    assert any("reading stopped early" in text for text in audio.warnings)


class _Stalling(io.BytesIO):
    """A pipe that gives its beginning, and the rest when it is let."""

    def __init__(self, data: bytes, at: int) -> None:
        super().__init__(data)
        self._at = at
        self.caught, self.go_on = threading.Event(), threading.Event()

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= self._at:
            self.caught.set()
            assert self.go_on.wait(20)
        return super().read(size)

    read1 = read


def test_closed_while_a_thread_decodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder is freed when the thread is done with it, not under its hands."""
    write_wav(tmp_path / "a.wav", tone(60))
    pipe = _Stalling((tmp_path / "a.wav").read_bytes(), 1_000_000)
    audio = AudioFile("-", pipe)
    freed: list[str] = []
    monkeypatch.setattr(audio, "_close_file", lambda: freed.append(threading.current_thread().name))
    thread = threading.Thread(target=lambda: list(audio), name="decoding")
    thread.start()
    assert pipe.caught.wait(20)
    audio.close()
    assert freed == []
    pipe.go_on.set()
    thread.join(20)
    assert freed == ["decoding"]


def test_closed_in_the_middle(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", tone(60))
    with AudioFile(tmp_path / "a.wav") as audio:
        blocks = iter(audio)
        next(blocks)
    assert list(blocks) == list(audio) == []
    audio.close()
