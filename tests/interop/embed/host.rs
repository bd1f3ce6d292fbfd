//! host TEST_WORKER REQUESTS: a bus in a program in Rust, by its C interface and no crate. Requests
//! in sessions: each gets its own answer, each session keeps its worker.
#![allow(non_camel_case_types)]

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void, CString};
use std::{env, process, slice, str};

#[repr(C)]
struct stdio_bus {
    _private: [u8; 0],
}

type text_cb = extern "C" fn(*mut stdio_bus, c_int, *const c_char, *mut c_void);

#[repr(C)]
struct listener_config {
    mode: c_int,
    tcp_host: *const c_char,
    tcp_port: u16,
    unix_path: *const c_char,
}

#[repr(C)]
struct options {
    config_path: *const c_char,
    config_json: *const c_char,
    listener: listener_config,
    on_message: extern "C" fn(*mut stdio_bus, *const c_char, usize, *mut c_void),
    on_error: Option<text_cb>,
    on_log: Option<text_cb>,
    on_worker: Option<text_cb>,
    on_client_connect: Option<text_cb>,
    on_client_disconnect: Option<text_cb>,
    user_data: *mut c_void,
    log_level: c_int,
}

#[repr(C)]
struct pollfd {
    fd: c_int,
    events: i16,
    revents: i16,
}

unsafe extern "C" {
    fn stdio_bus_create(options: *const options) -> *mut stdio_bus;
    fn stdio_bus_start(bus: *mut stdio_bus) -> c_int;
    fn stdio_bus_step(bus: *mut stdio_bus, timeout_ms: c_int) -> c_int;
    fn stdio_bus_stop(bus: *mut stdio_bus, timeout_sec: c_int) -> c_int;
    fn stdio_bus_destroy(bus: *mut stdio_bus);
    fn stdio_bus_ingest(bus: *mut stdio_bus, msg: *const c_char, len: usize) -> c_int;
    fn stdio_bus_get_state(bus: *const stdio_bus) -> c_int;
    fn stdio_bus_get_poll_fd(bus: *const stdio_bus) -> c_int;
    fn poll(fds: *mut pollfd, count: std::ffi::c_ulong, timeout_ms: c_int) -> c_int;
}

const OK: c_int = 0;
const STOPPED: c_int = 4;
const POLLIN: i16 = 1;
const SESSIONS: usize = 16;
const WINDOW: usize = 32;
const DEADLINE_MS: c_int = 60_000;

#[derive(Default)]
struct Host {
    wanted: usize,
    sent: usize,
    answered: Vec<bool>,
    count: usize,
    pids: HashMap<usize, String>,
}

/// The text after `start`, up to one of the bytes of a number's or a string's end.
fn member<'a>(message: &'a str, start: &str) -> &'a str {
    let at = message.find(start).unwrap_or_else(|| panic!("no {start} in {message}"));
    let rest = &message[at + start.len()..];
    &rest[..rest.find([',', '}', '"']).unwrap_or(rest.len())]
}

impl Host {
    fn send(&mut self, bus: *mut stdio_bus) {
        while self.sent < self.wanted && self.sent - self.count < WINDOW {
            let n = self.sent;
            let session = n % SESSIONS;
            let text = format!(
                r#"{{"id":{n},"sessionId":"s{session}","method":"echo","params":{{"own":"n{n}"}}}}"#
            );
            let status = unsafe { stdio_bus_ingest(bus, text.as_ptr().cast(), text.len()) };
            assert_eq!(status, OK, "request {n}");
            self.sent += 1;
        }
    }

    fn take(&mut self, message: &str) {
        let n: usize = member(message, "\"id\":").parse().expect("an id of the host");
        assert_eq!(member(message, "\"own\":\""), format!("n{n}"), "another request's answer");
        assert!(!self.answered[n], "request {n} was answered twice");
        self.answered[n] = true;
        self.count += 1;
        let pid = member(message, "\"pid\":").to_string();
        let known = self.pids.entry(n % SESSIONS).or_insert_with(|| pid.clone());
        assert_eq!(*known, pid, "the session has moved");
    }
}

extern "C" fn on_message(
    bus: *mut stdio_bus,
    message: *const c_char,
    len: usize,
    user_data: *mut c_void,
) {
    let host = unsafe { &mut *user_data.cast::<Host>() };
    let bytes = unsafe { slice::from_raw_parts(message.cast::<u8>(), len) };
    host.take(str::from_utf8(bytes).expect("UTF-8"));
    host.send(bus);
}

fn run(bus: *mut stdio_bus, host: *mut Host) {
    let fd = unsafe { stdio_bus_get_poll_fd(bus) };
    assert!(fd >= 0, "there is no poll_fd");
    unsafe { (*host).send(bus) };
    while unsafe { stdio_bus_get_state(bus) } != STOPPED {
        let mut waiting = pollfd { fd, events: POLLIN, revents: 0 };
        assert_eq!(unsafe { poll(&mut waiting, 1, DEADLINE_MS) }, 1, "nothing happens");
        assert!(unsafe { stdio_bus_step(bus, 0) } >= 0);
        if unsafe { (*host).count == (*host).wanted } {
            assert_eq!(unsafe { stdio_bus_stop(bus, -1) }, OK);
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let wanted: usize = arguments[2].parse().expect("a number of requests");
    let config = CString::new(format!(
        r#"{{"pools":[{{"id":"echo","command":"{}","instances":4}}]}}"#,
        arguments[1]
    ))
    .unwrap();
    let host = Box::into_raw(Box::new(Host {
        wanted,
        answered: vec![false; wanted],
        ..Host::default()
    }));
    let options = options {
        config_path: std::ptr::null(),
        config_json: config.as_ptr(),
        listener: listener_config {
            mode: 0,
            tcp_host: std::ptr::null(),
            tcp_port: 0,
            unix_path: std::ptr::null(),
        },
        on_message,
        on_error: None,
        on_log: None,
        on_worker: None,
        on_client_connect: None,
        on_client_disconnect: None,
        user_data: host.cast(),
        log_level: 2,
    };
    unsafe {
        let bus = stdio_bus_create(&options);
        if bus.is_null() || stdio_bus_start(bus) != OK {
            eprintln!("host: the bus cannot be started");
            process::exit(1);
        }
        run(bus, host);
        stdio_bus_destroy(bus);
        let host = Box::from_raw(host);
        assert!(host.answered.iter().all(|&was| was));
        println!("{} requests in {} sessions", host.count, host.pids.len());
    }
}
