# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev deps: Debian packages, the Python tools and libonnx. Each is set up once; what is in place costs a look.

ONNX_VERSION=$(sed -n 's/^onnx==//p' requirements.txt)

command_deps() {
  install_packages
  mkdir -p "$CACHE" .deps
  exec 8>"$CACHE/.lock"
  flock 8
  install_python
  install_onnx
  flock -u 8
  export PATH="$HONE_SOURCE/.deps/venv/bin:$PATH"
}

# missing_packages FILE: the packages of the list that are not installed.
missing_packages() {
  local wanted
  wanted=$(grep -v '^#' "$1")
  # dpkg-query complains about unknown names on stderr and lists the others.
  # shellcheck disable=SC2086
  comm -23 <(sort <<<"$wanted") \
    <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | sed -n 's/ installed$//p' | sort -u)
}

install_packages() {
  local missing
  command -v apt-get >/dev/null || fail "this setup is for Debian 12 and needs apt-get, which is not here"
  missing=$(missing_packages requirements.apt)
  python_without_pip && missing+=$'\npython3-venv'
  if [ -n "$missing" ]; then
    install_missing "$missing"
  fi
}

python_without_pip() {
  ! python3 -c 'import ensurepip, venv' 2>/dev/null
}

install_missing() {
  local package
  logged apt-update "updating the package lists" as_root apt-get update
  for package in $1; do
    apt-cache show "$package" >/dev/null 2>&1 ||
      fail "apt does not know the package '$package': add a package source that carries it for this Debian release, then run './dev deps' again"
  done
  # shellcheck disable=SC2086
  logged apt-install "installing $(wc -w <<<"$1") Debian packages" \
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $1
}

# Each setup has a folder named after what it is made from; the file `complete` in it says that it was finished.

install_python() {
  local version venv
  version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  venv=$CACHE/venv-$version-$(hash_of requirements.txt)
  if [ ! -e "$venv/complete" ]; then
    rm -rf "$venv"
    logged venv "making a Python $version environment" python3 -m venv "$venv"
    logged pip "installing the Python tools" "$venv/bin/pip" install -r requirements.txt
    touch "$venv/complete"
  fi
  ln -sfn "$venv" .deps/venv
}

install_onnx() {
  local prefix
  prefix=$CACHE/onnx-$ONNX_VERSION-$(hash_of scripts/dev/build-onnx.sh)
  if [ ! -e "$prefix/complete" ]; then
    rm -rf "$prefix"
    logged onnx "building libonnx $ONNX_VERSION (some minutes, once)" \
      env PATH="$HONE_SOURCE/.deps/venv/bin:$PATH" scripts/dev/build-onnx.sh "$ONNX_VERSION" "$prefix" "$JOBS"
    touch "$prefix/complete"
  fi
  ln -sfn "$prefix" .deps/onnx
}
