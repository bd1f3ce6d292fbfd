//! A server of the official Rust library, and clients of it around the daemon: `server`, or
//! `check DAEMON DIRECTORY`, which starts all of them and prints what it has tried.

use std::{
    io::{BufRead, BufReader},
    process::{Command as Program, Stdio},
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, Peer, RoleServer, ServerHandler,
    ServiceExt,
    handler::server::wrapper::Parameters,
    model::{CallToolRequestParams, ProgressNotificationParam, ProtocolVersion, RequestMetaObject},
    schemars, serde,
    service::{NotificationContext, RunningService},
    tool, tool_handler, tool_router,
    transport::{TokioChildProcess, stdio},
};
use tokio::{process::Command, sync::Mutex};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "rmcp::serde")]
#[schemars(crate = "rmcp::schemars")]
struct Named {
    name: String,
}

struct Demo;

#[tool_router]
impl Demo {
    #[tool(description = "the name and the process")]
    async fn echo(&self, Parameters(Named { name }): Parameters<Named>) -> String {
        format!("{name} from {}", std::process::id())
    }

    #[tool(description = "three steps")]
    async fn steps(
        &self,
        meta: RequestMetaObject,
        client: Peer<RoleServer>,
        Parameters(Named { name }): Parameters<Named>,
    ) -> Result<String, rmcp::ErrorData> {
        let token = meta
            .get_progress_token()
            .ok_or(rmcp::ErrorData::invalid_params("no progress token", None))?;
        for step in 1..=3 {
            let note = ProgressNotificationParam::new(token.clone(), f64::from(step))
                .with_message(name.clone());
            client
                .notify_progress(note)
                .await
                .map_err(|error| rmcp::ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok(name)
    }
}

#[tool_handler]
impl ServerHandler for Demo {}

#[derive(Default)]
struct Person {
    heard: Mutex<Vec<String>>,
}

impl ClientHandler for Person {
    async fn on_progress(
        &self,
        note: ProgressNotificationParam,
        _context: NotificationContext<rmcp::RoleClient>,
    ) {
        let text = format!("{} {}", note.message.unwrap_or_default(), note.progress);
        self.heard.lock().await.push(text);
    }
}

fn call(tool: &'static str, name: &str) -> CallToolRequestParams {
    let arguments = serde_json::json!({ "name": name });
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

fn expect(condition: bool, what: String) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(what.into()) }
}

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

async fn connect(
    command: &[String],
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<rmcp::RoleClient, Person>, Failure> {
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]);
    Ok(Person::default()
        .serve_with_lifecycle(TokioChildProcess::new(program)?, lifecycle)
        .await?)
}

/// Connects by a command, and returns the process of the server.
async fn person(
    name: String,
    command: Vec<String>,
    lifecycle: ClientLifecycleMode,
    version: ProtocolVersion,
) -> Result<String, Failure> {
    let client = connect(&command, lifecycle).await?;
    let got = client.peer_info().map(|info| info.protocol_version.clone());
    expect(
        got.as_ref() == Some(&version),
        format!("{name}: version {got:?}"),
    )?;
    let tools = client.list_all_tools().await?;
    expect(tools.len() == 2, format!("{name}: {tools:?}"))?;
    let names: Vec<_> = (0..20).map(|i| format!("{name}{i}")).collect();
    let mut from = String::new();
    for (name, result) in names.iter().zip(
        futures::future::join_all(
            names
                .iter()
                .map(|name| client.call_tool(call("echo", name))),
        )
        .await,
    ) {
        let text = result?.content[0].as_text().unwrap().text.clone();
        let (echoed, pid) = text.split_once(" from ").ok_or("no process")?;
        expect(echoed == name, text.clone())?;
        from = pid.to_string();
    }
    client.call_tool(call("steps", &name)).await?;
    for _ in 0..500 {
        if client.service().heard.lock().await.len() >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut heard = client.service().heard.lock().await.clone();
    heard.sort(); // the library runs the handlers of notifications beside each other
    let wanted: Vec<_> = (1..=3).map(|step| format!("{name} {step}")).collect();
    expect(heard == wanted, format!("{name}: {heard:?}"))?;
    client.cancel().await?;
    Ok(from)
}

async fn check(daemon: &str, folder: &str) -> Result<(), Failure> {
    let own = std::env::current_exe()?.to_str().unwrap().to_string();
    let (config, socket) = (format!("{folder}/config.json"), format!("{folder}/s"));
    let pools = serde_json::json!({ "pools": [{ "id": "pool", "command": own, "args": ["server"],
        "protocol": "mcp", "clients": "sticky", "instances": 2 }] });
    std::fs::write(&config, pools.to_string())?;
    let mut bus = Program::new(daemon)
        .args([
            "--config",
            &config,
            "--unix",
            &socket,
            "--http",
            "127.0.0.1:0",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(bus.stderr.take().unwrap()).lines();
    let address = lines
        .find_map(|line| {
            Some(
                line.ok()?
                    .split_once("HTTP at ")?
                    .1
                    .split(' ')
                    .next()?
                    .to_string(),
            )
        })
        .ok_or("the daemon has ended")?;
    std::thread::spawn(move || lines.for_each(drop));
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| word.to_string())
            .collect::<Vec<_>>()
    };
    let ways = [
        ("socket", words(&[daemon, "--connect", &socket])),
        (
            "remote",
            words(&[daemon, "--connect", &format!("{address}/mcp")]),
        ),
        (
            "share",
            words(&[daemon, "--share", "--idle-exit", "1", "--", &own, "server"]),
        ),
    ];
    // One client of each era stays, so that either era has one of the two processes. Without these,
    // two clients of one era that come first get a process each.
    let mut stay = Vec::new();
    for lifecycle in [discover(), ClientLifecycleMode::Initialize] {
        stay.push(connect(&ways[0].1, lifecycle).await?);
    }
    let mut people = Vec::new();
    for (way, command) in ways {
        for (mode, lifecycle, version) in [
            (
                "initialize",
                ClientLifecycleMode::Initialize,
                ProtocolVersion::V_2025_11_25,
            ),
            ("discover", discover(), ProtocolVersion::V_2026_07_28),
        ] {
            let name = format!("{way} {mode}");
            let task = person(name.clone(), command.clone(), lifecycle, version);
            people.push((
                mode,
                name,
                tokio::spawn(tokio::time::timeout(Duration::from_secs(120), task)),
            ));
        }
    }
    let (mut passed, mut failed) = (0, 0);
    let mut shared = std::collections::HashMap::new();
    for (mode, name, task) in people {
        match task.await?? {
            // All clients of an era share a process of the daemon.
            Ok(pid)
                if name.starts_with("share")
                    || *shared.entry(mode).or_insert(pid.clone()) == pid =>
            {
                passed += 1;
                println!("ok: {name}, process {pid}");
            }
            Ok(pid) => {
                failed += 1;
                println!("FAILED: {name}: a process of its own, {pid}");
            }
            Err(error) => {
                failed += 1;
                println!("FAILED: {name}: {error}");
            }
        }
    }
    println!("# pass {passed}\n# fail {failed}");
    for client in stay {
        client.cancel().await?;
    }
    bus.kill()?;
    bus.wait()?;
    expect(failed == 0, format!("{failed} failed"))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("server") => {
            Demo.serve(stdio()).await?.waiting().await?;
            Ok(())
        }
        Some("check") if arguments.len() == 4 => check(&arguments[2], &arguments[3]).await,
        _ => Err("server, or check DAEMON DIRECTORY".into()),
    }
}
