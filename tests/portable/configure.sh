#!/bin/sh
# configure.sh CC CPPFLAGS [OPTION...]: configures, in the working directory, a build that has
# nothing that Linux has and macOS or a BSD lacks, and what macOS has: getpeereid in place of
# SO_PEERCRED, launchd's sockets, and no accept4, pipe2, memfd_create, close_range,
# timerfd_create, pidfd_open, inotify or prctl; paths of sockets are as short as there, pipes have
# 16 KiB, and poll refuses devices. Its malloc is this system's: without mallopt, glibc's keeps the
# longest message so far, as no malloc there does. OPTIONs are those of ./configure,
# --with-event-backend among them.

[ $# -ge 2 ] || {
    echo 'usage: configure.sh CC CPPFLAGS [OPTION...]' >&2
    exit 64
}
here=$(cd "$(dirname "$0")" && pwd) || exit
compiler=$1 flags=$2
shift 2

: >build_config.h || exit # made by configure, which needs the object before
# shellcheck disable=SC2086 # a compiler and what is before it
for object in getpeereid launch kernel; do
    $compiler -D_GNU_SOURCE -I. -I"$here" -c -o $object.o "$here/$object.c" || exit
done
flags="$flags -DUNIX_PATH_SIZE=104 -I$here -include $here/getpeereid.h"
exec "$here/../../configure" -q CC="$compiler" CPPFLAGS="$flags" \
    LIBS="$PWD/getpeereid.o $PWD/launch.o $PWD/kernel.o -Wl,--wrap=pipe -Wl,--wrap=poll" \
    ac_cv_func_getpeereid=yes ac_cv_func_launch_activate_socket=yes \
    ac_cv_member_struct_ucred_uid=no ac_cv_func_accept4=no ac_cv_func_pipe2=no \
    ac_cv_func_memfd_create=no ac_cv_header_sys_inotify_h=no ac_cv_have_decl_SYS_close_range=no \
    ac_cv_func_timerfd_create=no ac_cv_have_decl_SYS_pidfd_open=no \
    ac_cv_have_decl_PR_SET_PDEATHSIG=no ac_cv_have_decl_PR_SET_NO_NEW_PRIVS=no "$@"
