"""Compiles the CUDA kernels of runtime/kernels to PTX, which is committed beside them.

    python scripts/kernels.py            # writes runtime/kernels/ptx
    python scripts/kernels.py --check    # fails where what is committed is not what the sources give
    python scripts/kernels.py --spills   # fails where a kernel needs more registers than there are

NVRTC and ptxas come from PyPI and need neither a GPU nor a driver:

    pip install nvidia-cuda-nvrtc-cu12==12.1.105 nvidia-cuda-runtime-cu12==12.1.105 nvidia-cuda-nvcc-cu12==12.9.86

The versions are exact: another NVRTC writes other PTX. That of 12.1 runs on every driver from 12.1 on, and for
compute capability 7.5 on every card from Turing on.
"""

import ctypes
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "runtime" / "kernels"
PACKAGES = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
OPTIONS = ["--gpu-architecture=compute_75", "--std=c++17", f"--include-path={KERNELS}"]
# The cards that the registers are counted for: Turing, Ampere, Hopper.
CARDS = ["sm_75", "sm_80", "sm_90"]


def nvrtc():
    folder = PACKAGES / "cuda_nvrtc" / "lib"
    # The library looks for its other half by name, and finds it where it is loaded already.
    ctypes.CDLL(str(folder / "libnvrtc-builtins.so.12.1"), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(folder / "libnvrtc.so.12"))


def compile(library, source):
    """The PTX of a source file."""
    program = ctypes.c_void_p()
    text = source.read_bytes()
    library.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None)
    options = (ctypes.c_char_p * len(OPTIONS))(*[option.encode() for option in OPTIONS])
    result = library.nvrtcCompileProgram(program, len(OPTIONS), options)
    log = read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
    if result != 0 or log.strip():
        sys.exit(f"{source.name}:\n{log}")
    ptx = read(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
    # Numbers of a header of NVRTC's own, which no kernel reads.
    return re.sub(r"^\.global .*2nv6target.*;\n", "", ptx, flags=re.MULTILINE)


def read(size_of, get, program):
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.value.decode()


def check_plain(name, ptx):
    """What the kernels must do without."""
    for found, what in [(r"\bcall\b", "a function call"), (r"\.local\b", "local memory"), (r"\.f64\b", "double precision")]:
        if re.search(found, ptx):
            sys.exit(f"{name} has {what}")


def spills(ptx):
    """Fails where registers do not suffice; gives the most that a kernel takes."""
    most = 0
    for card in CARDS:
        command = [PACKAGES / "cuda_nvcc" / "bin" / "ptxas", "-v", f"--gpu-name={card}", "--output-file=/dev/null", ptx]
        report = subprocess.run(command, capture_output=True, text=True)
        if report.returncode != 0:
            sys.exit(report.stderr)
        spilled = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", report.stderr)
        if not spilled or any(numbers != ("0", "0", "0") for numbers in spilled):
            sys.exit(f"{ptx.name} spills on {card}:\n{report.stderr}")
        most = max(most, *map(int, re.findall(r"Used (\d+) registers", report.stderr)))
    return most


def main():
    check, only_spills = "--check" in sys.argv, "--spills" in sys.argv
    sources = sorted(KERNELS.glob("*.cu"))
    if not only_spills:
        library = nvrtc()
        stale = {path for path in (KERNELS / "ptx").glob("*.ptx") if not (KERNELS / f"{path.stem}.cu").exists()}
        for source in sources:
            ptx = compile(library, source)
            check_plain(source.name, ptx)
            path = KERNELS / "ptx" / f"{source.stem}.ptx"
            if not check:
                path.write_text(ptx)
            elif not path.exists() or path.read_text() != ptx:
                stale.add(path)
        if check and stale:
            sys.exit(f"not what the sources give: {sorted(p.name for p in stale)}; run scripts/kernels.py")
        print(f"{len(sources)} files of kernels, {'as committed' if check else 'compiled'}")
    if only_spills:
        for source in sources:
            most = spills(KERNELS / "ptx" / f"{source.stem}.ptx")
            print(f"{source.stem}: no spills, at most {most} registers")


main()
