# shellcheck shell=sh
# npm.sh: what the tests with npm packages share; sourced. Exits with status 77 without node or npm.

[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
for program in node npm; do
    if ! command -v $program >/dev/null; then
        echo "skipped: $program is not installed"
        exit 77
    fi
done

# install_locked DIRECTORY: installs the packages of its package-lock.json in the working directory,
# unless they are there. Fails, with the end of npm's output, if npm cannot.
install_locked() {
    ! cmp -s "$1/package-lock.json" installed-lock.json || return 0
    cp "$1/package-lock.json" package-lock.json || exit 99
    echo 'Installing the npm packages of package-lock.json'
    npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 </dev/null || {
        tail -n 20 npm.log
        return 1
    }
    # Copied after the installation: the copy names the installed packages.
    cp package-lock.json installed-lock.json || exit 99
}
