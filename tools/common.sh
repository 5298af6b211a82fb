# Common parts of the tools: package lists, installation of missing ones, the Python environment, the build. Sourced.
# shellcheck shell=bash disable=SC2034

tool="$(realpath "$0")"
caller="$PWD"  # relative folders on the command line are meant from here
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root" || exit

build_packages=(g++ cmake ninja-build libboost-dev libeigen3-dev libfmt-dev libcli11-dev libtomlplusplus-dev libutf8proc-dev nlohmann-json3-dev zlib1g-dev)
test_packages=(catch2 libmpfr-dev clang-format ccache nodejs)
browser_packages=(chromium fonts-liberation2)
image_packages=(dataset-fashion-mnist)
text_packages=(bible-kjv bible-kjv-text)
speech_packages=(espeak-ng)
translation_packages=(binutils-common coreutils dpkg gettext git gnupg-l10n iso-codes libc-l10n libdpkg-perl libglib2.0-data procps tar wget)
data_packages=("${image_packages[@]}" "${text_packages[@]}" "${speech_packages[@]}" "${translation_packages[@]}")
clang_packages=(clang libclang-rt-dev)
ptx_packages=(libzstd-dev)
mpi_packages=(libopenmpi-dev openmpi-bin)
lint_packages=(clang clang-tidy shellcheck)
site_packages=(doxygen)
slurm_packages=(slurmctld slurmd slurm-client munge)

venv="$root/.venv"
python="$venv/bin/python"
halfscope="$root/build/release/experiments/halfscope"
export PYTHONPATH="$root/lib/python:$root/tools${PYTHONPATH:+:$PYTHONPATH}"

say() { echo "== $*"; }

# lap STAGE: says the seconds of a stage, which began where the last one ended; tools/record --times reads them.
lapped=0
lap() {
  say "$1: $((SECONDS - lapped)) s"
  lapped=$SECONDS
}

stop() {  # the request cannot be met: exit status 2
  echo "${0##*/}: $*" >&2
  exit 2
}

# Prints the block of comments that opens a tool: its help text.
show_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$tool"; }

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

# Installs the Debian packages that are missing. With no_install=yes it only checks, and where there is no apt-get it
# leaves the check to cmake.
need_packages() {
  local missing as_root=()
  if ! command -v apt-get >/dev/null; then
    [[ "${no_install:-no}" == yes ]] && return
    stop "this is not a Debian-like system. Install what these Debian packages hold, then run with --no-install: $*"
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  [[ "${no_install:-no}" == no ]] || stop "missing packages: ${missing[*]} (apt-get install ${missing[*]})"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || stop "neither root nor sudo; ask for: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Container images leave translations out of what they install: the packages' French ones then go to the user's cache folder,
# where the program finds them.
need_catalogues() {
  local installed=/usr/share/locale/fr/LC_MESSAGES kept="${XDG_CACHE_HOME:-$HOME/.cache}/halfscope/locale/fr" fetched
  if [[ -e "$installed/git.mo" && -e "$installed/gas.mo" || -e "$kept" || "${no_install:-no}" == yes ]]; then return; fi
  command -v apt-get >/dev/null || return 0
  say "fetching French message catalogues of ${translation_packages[*]}"
  mkdir -p "${kept%/*}"
  fetched="$(mktemp -d "${kept%/*}/fetched.XXXXXX")"
  (cd "$fetched" && apt-get download -qq "${translation_packages[@]}" && for package in *.deb; do dpkg -x "$package" .; done)
  mv "$fetched/usr/share/locale/fr" "$kept"
  rm -r "$fetched"
}

need_cmake() {
  local have
  have="$(cmake --version 2>/dev/null | sed -n '1s/cmake version //p')"
  [[ "$(printf '%s\n' 3.24 "$have" | sort -V | head -1)" == 3.24 ]] ||
    stop "cmake 3.24 or newer is needed, found ${have:-none}; 'pip install cmake' has one"
}

# Any Python will do, if it can make environments; Debian's where there is none.
need_python() {
  python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages python3 python3-venv
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    stop "Python 3.10 or newer is needed, found $(python3 --version)"
}

# A virtual environment with tools/requirements.txt in it; made anew where the list or the interpreter has changed.
need_venv() {
  local stamp="$venv/requirements.stamp" wanted
  need_python
  wanted="$(python3 --version; sha256sum <tools/requirements.txt)"
  if [[ "$(cat "$stamp" 2>/dev/null)" == "$wanted" ]] && "$python" -c "" 2>/dev/null; then return; fi
  say "making the Python environment .venv"
  python3 -m venv --clear "$venv"
  pip_install -r tools/requirements.txt
  echo "$wanted" >"$stamp"
}

# Twice, since a package index is not always reachable at the first attempt.
pip_install() {
  "$python" -m pip install --quiet --disable-pip-version-check "$@" ||
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
}

# install_package [PIP-OPTION...]: the compiled module of the Python package, which figures need for the counts of a cast;
# its other files are used where they are, and the program is that of the preset release.
install_package() {
  "$python" -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("include"), "Python.h").stat()' 2>/dev/null ||
    need_packages python3-dev
  # By the name that CMake takes for the presets: to a compiler cache another name is another compiler.
  CXX="${CXX:-c++}" pip_install --no-build-isolation --no-deps --config-settings=cmake.define.HALFSCOPE_PROGRAM=OFF "$@" --editable .
}

# A second environment, with the package index's PyTorch and networks of others (5 GB); with the package.
torch_python="$root/build/torch/bin/python"
need_torch_venv() {
  local stamp="$root/build/torch/requirements.stamp" python="$torch_python" wanted
  need_python
  wanted="$(python3 --version; cat tools/requirements.txt tools/torch-requirements.txt | sha256sum)"
  if [[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]]; then
    python3 -m venv --clear "$root/build/torch"
    pip_install -r tools/requirements.txt -r tools/torch-requirements.txt
    echo "$wanted" >"$stamp"
  fi
  install_package --config-settings=build-dir=build/torch-package
}

# The builds that follow use ccache where it is installed: the library in the Python package and in the program, and the
# sources that the presets, and copies of this tree below it, compile alike, are compiled once.
use_cache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros}"
  export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$root}" CCACHE_NOHASHDIR=yes CCACHE_DEPEND=yes
}

# build PRESET [CONFIGURE-OPTION...]: a new folder compiles the sources of each folder as one, an older one does as before.
build() {
  local unity=()
  need_cmake
  [[ -e "build/$1/CMakeCache.txt" ]] || unity=(-DHALFSCOPE_UNITY=ON)
  cmake --preset "$1" --log-level=WARNING "${unity[@]}" "${@:2}"
  cmake --build --preset "$1"
}

# The program alone: its users need no test framework.
build_program() { build release -DHALFSCOPE_TESTS=OFF; }

draw_report() { "$python" -m halfscope.report "$1"; }
