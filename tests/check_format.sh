#!/bin/sh
# Fails where a C++ or CUDA source is not formatted as .clang-format says: check_format.sh ROOT
set -eu
cd "${1:?usage: check_format.sh ROOT}"
command -v clang-format >/dev/null || { echo "clang-format is missing: install it (apt-get install clang-format)" >&2; exit 1; }
# In a repository: tracked files, and untracked ones that are not ignored. In a release archive: all.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  sources() { git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.cu' '*.cuh'; }
else
  sources() { find lib sim experiments tests examples -type f \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) -print0; }
fi
list=$(mktemp)
trap 'rm -f "$list"' EXIT
sources >"$list"
[ -s "$list" ] || { echo "no sources found in $PWD" >&2; exit 1; }
# A tracked file may have been deleted.
xargs -0 sh -c 'for file; do [ -e "$file" ] && printf "%s\0" "$file"; done; true' sh <"$list" |
  xargs -0 clang-format --dry-run --Werror
