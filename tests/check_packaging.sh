#!/bin/sh
# check_packaging.sh: what make install installs beside the programs, and what contrib/ has for
# packagers: completions, units, services, and packages as far as they can be checked unbuilt. Run
# by `make check-packaging`. A check whose tool is missing is skipped, with a line that says so.

export LC_ALL=C # a-z and sort are those of ASCII
cd "${SOURCE_DIR:-$(dirname "$0")/..}" || exit 99
dir=$(mktemp -d "${TMPDIR:-/tmp}/check_packaging.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
checks=0
failures=0

fail() {
    printf 'FAILED: %s\n' "$*"
    failures=$((failures + 1))
}

# check NAME COMMAND...: shows the output of a command that fails.
check() {
    name=$1
    shift
    checks=$((checks + 1))
    "$@" >"$dir/log" 2>&1 </dev/null && return
    fail "$name: status $?"
    cat "$dir/log"
}

has() {
    command -v "$1" >/dev/null 2>&1 && return
    printf 'skipped: %s is not installed\n' "$1"
    return 1
}

same() { # NAME EXPECTED FOUND
    checks=$((checks + 1))
    [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"
}

# --- addresses and versions, whose source is configure.ac ---

packages="contrib/alpine/APKBUILD contrib/container/Dockerfile contrib/debian/changelog
    contrib/debian/control contrib/debian/copyright contrib/rpm/stdio_bus.spec"
for file in $packages; do
    checks=$((checks + 1))
    grep -qF -e "$URL" -e "<$BUGS>" "$file" || fail "$file: neither $URL nor <$BUGS>"
done
# shellcheck disable=SC2086 # a list
same 'addresses in contrib/' "$(printf '%s\n%s\n' "$BUGS" "$URL" | sort)" \
    "$(grep -ohE '[a-z@/:.-]+\.example/?' $packages | sort -u)"
same 'contrib/debian/changelog' "$VERSION" \
    "$(sed -n '1s/.*(\(.*\)-[0-9]*).*/\1/p' contrib/debian/changelog)"
same 'contrib/rpm/stdio_bus.spec' "$VERSION" \
    "$(sed -n 's/^Version: *//p' contrib/rpm/stdio_bus.spec)"
same 'contrib/alpine/APKBUILD' "$VERSION" "$(sed -n 's/^pkgver=//p' contrib/alpine/APKBUILD)"
same 'contrib/container/Dockerfile' "$VERSION" \
    "$(sed -n 's/.*image\.version="\(.*\)".*/\1/p' contrib/container/Dockerfile)"
same 'NEWS, its first heading' "$VERSION (DATE)" \
    "$(sed -n '/^[0-9].*[0-9)]$/{s/([0-9]\{4\}-[0-9][0-9]-[0-9][0-9])/(DATE)/p;q;}' NEWS)"

# --- what is installed ---

check 'make install' "$MAKE" -s -C "$BUILD_DIR" install DESTDIR="$dir/root"
prefix=$dir/root$(sed -n 's/^prefix = //p' "$BUILD_DIR/Makefile")
for page in man1/stdio_bus.1 man1/stdio_bus_ctl.1 man1/stdio_bus_rmp.1 man5/stdio_bus.conf.5 \
    man7/stdio_bus_protocol.7; do
    check "$page" test -s "$prefix/share/man/$page"
    check "$page in the RPM package" grep -qF "man${page#man}*" contrib/rpm/stdio_bus.spec
done
for file in "$prefix/share/doc/stdio_bus/examples"/*.c; do
    case $file in *_host.c) continue ;; esac
    check "${file##*/}, compiled where it is installed" "$CC" -std=c99 -Wall -Werror \
        -o "${file%.c}" "$file"
done
if [ -e "$prefix/include/stdio_bus_embed.h" ]; then
    for host in "$prefix/share/doc/stdio_bus/examples"/*_host.c; do
        check "${host##*/}, with the library that is installed" "$CC" -std=c99 -Wall -Werror \
            -I"$prefix/include" -o "${host%.c}" "$host" -L"$prefix/lib" -lstdio_bus
    done
    check 'libstdio_bus.3' test -s "$prefix/share/man/man3/libstdio_bus.3"
    check 'stdio_bus.pc' grep -q "^Version: $VERSION\$" "$prefix/lib/pkgconfig/stdio_bus.pc"
fi

# --- completions ---

for program in stdio_bus stdio_bus_rmp; do
    bash=$prefix/share/bash-completion/completions/$program
    zsh=$prefix/share/zsh/site-functions/_$program
    fish=$prefix/share/fish/vendor_completions.d/$program.fish
    # One a line, of lines as "  -h, --help  ..." and "  --help, --version".
    "$BUILD_DIR/$program" --help |
        sed -n 's/^ *\(-[A-Za-z], \)*\(--[a-z][a-z-]*\)\(, \)*\(--[a-z-]*\)*.*/\2 \4/p' |
        tr -s ' ' '\n' | grep . | sort -u >"$dir/options"
    same "$program: options for bash" "$(cat "$dir/options")" \
        "$(sed -n "s/.*compgen -W .'\(--.*\)'.*/\1/p" "$bash" | sed 's/\\n/\
/g' | grep -e '^--' | sort -u)"
    same "$program: options for zsh" "$(cat "$dir/options")" \
        "$(sed -n "s/^ *'\((-[A-Za-z] \)*\(--[a-z-]*[a-z]\).*/\2/p" "$zsh" | sort -u)"
    same "$program: options for fish" "$(cat "$dir/options")" \
        "$(sed -n 's/^complete .* -l \([a-z-]*\).*/--\1/p' "$fish" | sort -u)"
    has bash && check "$program: bash" bash -n "$bash"
    has zsh && check "$program: zsh" zsh -n "$zsh"
    has fish && check "$program: fish" fish --no-execute "$fish"
done

# stdio_bus ctl names its commands where it is given none.
commands=$("$STDIO_BUS" ctl 2>&1 | sed -n 's/^  \([a-z].*\)/\1/p' | sed 's/  .*//; s/, /\
/g' | sed 's/ .*//' | sort)
same 'ctl: commands' "$commands" \
    "$(sed -n "s/.* ctl | .* -W '\(.*\)' -- .*;.*/\1/p" \
        "$prefix/share/bash-completion/completions/stdio_bus" | tr ' ' '\n' | sort)"

# The words that an option takes, of the error after another one.
bash=$prefix/share/bash-completion/completions/stdio_bus
for option in protocol clients framing log-level log-format; do
    expected=$("$STDIO_BUS" --$option '?' 2>&1 | sed -n "s/.*--$option: must be //p" |
        sed 's/;.*//; s/,//g; s/ or / /')
    same "--$option: its words" "$expected" \
        "$(sed -n "/^    --$option)/{n;s/.*-W '\(.*\)' --.*/\1/p;}" "$bash")"
done

completes_in_bash() { # EXPECTED WORD...: for the last word
    # shellcheck disable=SC2016 # the other shell's
    bash -c '. "$1"; expected=$2; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _stdio_bus; echo "${COMPREPLY[*]}"; [ "${COMPREPLY[*]}" = "$expected" ]' \
        bash "$bash" "$@"
}
if has bash; then
    check 'bash: an option' completes_in_bash '--config --config-fd' stdio_bus --conf
    check 'bash: a word' completes_in_bash 'mcp' stdio_bus --protocol m
    check 'bash: a word after =' completes_in_bash 'mcp' stdio_bus --protocol = m
    check 'bash: a file' completes_in_bash 'NEWS' stdio_bus --config NEW
    check 'bash: no value' completes_in_bash '' stdio_bus --instances ''
    check 'bash: ctl' completes_in_bash 'ctl' stdio_bus c
    check 'bash: doctor' completes_in_bash 'doctor' stdio_bus d
    check 'bash: an option of doctor' completes_in_bash '--json' stdio_bus doctor --j
    check 'bash: a command of ctl' completes_in_bash 'metrics' stdio_bus ctl m
    check 'bash: the same after a socket' completes_in_bash 'disconnect' stdio_bus ctl ./s disc
    check 'bash: a word of ctl log' completes_in_bash 'warn' stdio_bus ctl log w
    check 'bash: an option of ctl' completes_in_bash '--json' stdio_bus ctl status --j
fi
# completes_in_fish EXPECTED WORD...: the beginnings of the proposals are the expected ones.
completes_in_fish() {
    # shellcheck disable=SC2016 # the other shell's
    fish --no-config -c 'source $argv[1]; set -l line (string escape -- $argv[3..-1])
        set -l found (complete -C "$line" | string replace -r "\t.*" "")
        echo $found; test "$found" = "$argv[2]"' \
        "$prefix/share/fish/vendor_completions.d/stdio_bus.fish" "$@"
}

# completes_in_zsh EXPECTED WORD...: what the function adds, without the arguments of options.
completes_in_zsh() {
    # shellcheck disable=SC2016 # the other shell's
    zsh -f -c 'file=$1 expected=$2 added=(); shift 2
        compadd() { shift; added+=("$@"); }
        _arguments() { local spec; for spec; do
            [[ $spec == --pool=* ]] && eval "${${spec##*:\{}%\}}"; done; }
        words=("$@") CURRENT=$#
        complete_it() { . $file; }
        complete_it; echo "$added"; [[ "$added" == "$expected" ]]' \
        zsh "$prefix/share/zsh/site-functions/_stdio_bus" "$@"
}

# Names of pools, workers and clients: of a configuration, and of a daemon. A name that a shell
# would not take for a plain word is none.
cat >"$dir/names.json" <<END
{"pools": [{"id": "tools", "command": "cat", "instances": 2},
    {"id": "\$(touch $dir/run)", "command": "cat", "instances": 1},
    {"id": "a,b\",\"pool\":\"c", "command": "cat", "instances": 1},
    {"id": "two words", "command": "cat", "instances": 1},
    {"id": "memory-2", "command": "cat", "instances": 1}]}
END
"$STDIO_BUS" --config "$dir/names.json" --unix "$dir/names.sock" --control "$dir/control.sock" \
    >"$dir/daemon.log" 2>&1 &
daemon=$!
tries=0
until "$STDIO_BUS" ctl "$dir/control.sock" workers 2>&1 | grep -q '"worker":6'; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || break
    sleep 0.1
done
export STDIO_BUS_CONTROL="$dir/control.sock" HOME="$dir" XDG_CONFIG_HOME="$dir/.config"
for shell in bash zsh fish; do
    has $shell || continue
    check "$shell: pools of a configuration" completes_in_$shell 'memory-2 tools' \
        "$STDIO_BUS" --config "$dir/names.json" --pool ''
    check "$shell: pools of a daemon" completes_in_$shell 'memory-2 tools' \
        "$STDIO_BUS" --connect "$dir/names.sock" --pool ''
    check "$shell: workers of ctl" completes_in_$shell '1 2 3 4 5 6' "$STDIO_BUS" ctl restart ''
    STDIO_BUS_CONTROL='' check "$shell: pools and workers after a socket" \
        completes_in_$shell '1 2 3 4 5 6 memory-2 tools' \
        "$STDIO_BUS" ctl "$dir/control.sock" drain ''
    check "$shell: no clients" completes_in_$shell '' "$STDIO_BUS" ctl disconnect ''
done
if has bash; then
    check 'bash: the pool that begins so' completes_in_bash 'tools' "$STDIO_BUS" --config = \
        "$dir/names.json" --pool = t
    check 'bash: a usual configuration' sh -c "mkdir -p $dir/.config/stdio_bus &&
        cp $dir/names.json $dir/.config/stdio_bus/stdio_bus.json"
    STDIO_BUS_CONTROL=/nowhere/c check 'bash: pools of the usual configuration' \
        completes_in_bash 'memory-2 tools' "$STDIO_BUS" --connect s --pool ''
fi
# Shared servers: --list shows one.
mkdir -m 700 "$dir/shared"
export XDG_RUNTIME_DIR="$dir/shared" XDG_CACHE_HOME="$dir/shared"
"$STDIO_BUS" --share=tools --idle-exit 1 -- cat </dev/null >"$dir/front.log" 2>&1
for shell in bash fish; do
    has $shell || continue
    check "$shell: shared servers" completes_in_$shell \
        "tools@$("$STDIO_BUS" --version | sed -n '1s/.* //p')" "$STDIO_BUS" --restart ''
done
"$STDIO_BUS" --stop tools >/dev/null 2>&1
unset XDG_RUNTIME_DIR
check 'completions run nothing' test ! -e "$dir/run"
kill $daemon
wait $daemon 2>/dev/null
unset STDIO_BUS_CONTROL
if has fish; then
    check 'fish: a word' completes_in_fish mcp stdio_bus --protocol m
fi

# --- systemd, OpenRC, launchd ---

# unit KIND: the installed unit, with the program where it is now.
unit() {
    mkdir -p "$dir/$1"
    sed "s|^\(Exec[A-Z][a-z]*\)=[^ ]*|\1=$STDIO_BUS|" "$prefix/lib/systemd/$1/stdio_bus@.service" \
        >"$dir/$1/stdio_bus@.service"
    cp "$prefix/lib/systemd/$1/stdio_bus@.socket" "$dir/$1"
    echo "$dir/$1/stdio_bus@.service" "$dir/$1/stdio_bus@.socket"
}
if [ -d "$prefix/lib/systemd" ] && has systemd-analyze; then
    # shellcheck disable=SC2046 # two words
    check 'unit of the system' systemd-analyze verify --man=no $(unit system)
    # shellcheck disable=SC2046
    XDG_RUNTIME_DIR=$dir check 'unit of a user' systemd-analyze --user verify --man=no \
        $(unit user)
    check 'unit of the system: exposure of at most 2.0' systemd-analyze security --offline=true \
        --threshold=20 "$dir/system/stdio_bus@.service"
    if [ "$(id -u)" -eq 0 ]; then
        mkdir -p "$dir/etc/etc"
        check 'sysusers.d' systemd-sysusers --root="$dir/etc" \
            "$prefix/lib/sysusers.d/stdio_bus.conf"
        check 'sysusers.d: the user' grep -q '^stdio_bus:' "$dir/etc/etc/passwd"
        check 'tmpfiles.d' systemd-tmpfiles --root="$dir/etc" --create \
            "$prefix/lib/tmpfiles.d/stdio_bus.conf"
        check 'tmpfiles.d: the directory' test -d "$dir/etc/run/stdio_bus"
    fi
fi
# The program of systemd that makes a socket and executes the daemon for its first client, which
# does not wait for more than the worker.
first_client_starts_the_daemon() {
    systemd-socket-activate -l "$dir/first.sock" "$STDIO_BUS" --unix "$dir/first.sock" \
        -- "$BUILD_DIR/doc/examples/echo_worker" &
    daemon=$!
    tries=0
    until [ -S "$dir/first.sock" ] || [ "$tries" -ge 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    echo '{"jsonrpc":"2.0","id":7,"method":"hello"}' |
        "$STDIO_BUS" --connect "$dir/first.sock" | grep '"id":7,"result"'
    status=$?
    kill "$daemon"
    wait "$daemon" && return "$status"
}
has systemd-socket-activate && check 'systemd-socket-activate' first_client_starts_the_daemon

scripts="contrib/cross-check contrib/package-check contrib/package-trial
    contrib/debian/stdio-bus.p*rm contrib/debian/tests/serves-a-worker
    contrib/alpine/stdio_bus.pre-install tests/portable/configure.sh fuzz/oss-fuzz/build.sh"
if has shellcheck; then
    # shellcheck disable=SC2086 # a list
    check 'shellcheck' shellcheck $scripts
    check 'shellcheck: release' shellcheck -x contrib/release/release contrib/release/check
    # Variables that the frame of the file sets or reads.
    check 'shellcheck: OpenRC' shellcheck -s sh -e SC2034,SC2154 \
        "$BUILD_DIR/contrib/openrc/stdio_bus.initd"
    check 'shellcheck: APKBUILD' shellcheck -s sh -e SC2034,SC2154 contrib/alpine/APKBUILD
fi
for name in pkgname pkgver pkgrel pkgdesc url arch license source sha512sums; do
    check "APKBUILD: $name" grep -q "^$name=" contrib/alpine/APKBUILD
done
[ ! -d .github ] || { has actionlint && check 'workflows' actionlint .github/workflows/*.yml; }
has xmllint && check 'launchd' xmllint --noout --nonet "$BUILD_DIR/contrib/launchd/stdio_bus.plist"
has plistutil && check 'launchd: property list' plistutil -i \
    "$BUILD_DIR/contrib/launchd/stdio_bus.plist" -o "$dir/plist"
has rpmspec && check 'RPM spec' rpmspec -P contrib/rpm/stdio_bus.spec

# --- Grafana ---

# The dashboard shows nothing that the daemon does not count, in expressions that Prometheus reads.
sed -n 's/.*"expr": "\(.*\)"}.*/\1/p' contrib/grafana.json | sed 's/\\"/"/g' >"$dir/expressions"
check 'Grafana: expressions' test -s "$dir/expressions"
"$STDIO_BUS" --unix "$dir/bus.sock" --control "$dir/control.sock" \
    -- "$BUILD_DIR/doc/examples/echo_worker" 2>"$dir/daemon" &
daemon=$!
tries=0
until "$STDIO_BUS" ctl "$dir/control.sock" metrics >"$dir/metrics" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -le 100 ] || { fail 'ctl metrics'; cat "$dir/metrics" "$dir/daemon"; break; }
    sleep 0.1
done
kill "$daemon"
wait "$daemon"
grep -oE 'stdio_bus_[a-z_]*' "$dir/expressions" | sort -u >"$dir/names"
while read -r name; do
    check "Grafana: $name" grep -q "^${name}[{ ]" "$dir/metrics"
done <"$dir/names"
if has promtool; then
    {
        printf 'groups:\n- name: dashboard\n  rules:\n'
        sed "s/'/''/g; s/.*/  - {record: x, expr: '&', labels: {n: '&'}}/" "$dir/expressions"
    } >"$dir/rules.yml"
    check 'Grafana: expressions for Prometheus' promtool check rules "$dir/rules.yml"
fi

echo "check_packaging: $checks checks, $failures failures"
[ "$failures" -eq 0 ]
