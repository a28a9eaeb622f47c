//! One connection to a server: its process, and the protocol over its standard input and output.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ProtocolVersion, RequestMetaObject,
    ServerResult, Tool as Described,
};
use rmcp::service::{
    ClientLifecycleMode, PeerRequestOptions, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::process::Child;

use super::broken;
use crate::call::Call;
use crate::error::{Blame, EffectError};
use crate::process::{Capture, Command, Kept};
use crate::tools::file::{Runs, ToolFile};
use crate::tools::tool::{Place, environment};

/// How much of what a server says beside the protocol is kept.
const SAID_BYTES: usize = 8 << 10;

/// An open connection. Dropped, the server's input closes, and its keeper ends it.
#[derive(Debug)]
pub(super) struct Link {
    service: RunningService<RoleClient, ()>,
    said: Arc<Mutex<Capture>>,
    child: tokio::sync::Mutex<(Child, OwnedReadHalf)>,
}

/// What came of a call.
#[derive(Debug)]
pub(super) enum Told {
    /// The result, as the protocol has it.
    Result(Value),
    /// The server did not do it.
    Refused(EffectError),
    /// Nothing that can be trusted: whether it was done is not known.
    Nothing(EffectError),
}

impl Link {
    /// Starts the server and greets it.
    pub(super) async fn open(
        file: &ToolFile,
        place: &Place,
        workspace: Option<PathBuf>,
    ) -> Result<Self, EffectError> {
        let greeting = Link::start(file, place, workspace.clone(), ClientLifecycleMode::Initialize);
        match greeting.await {
            // A server that knows only the newest protocol, which has no greeting.
            Err(error) if error.kind == "mcp.greeting" => {
                let preferred_versions = vec![ProtocolVersion::LATEST];
                let mode = ClientLifecycleMode::Discover { preferred_versions };
                Link::start(file, place, workspace, mode).await.map_err(|_| error)
            }
            opened => opened,
        }
    }

    async fn start(
        file: &ToolFile,
        place: &Place,
        workspace: Option<PathBuf>,
        mode: ClientLifecycleMode,
    ) -> Result<Self, EffectError> {
        let Runs::Mcp(argv) = &file.runs else { unreachable!("a command is no server") };
        let command = Command {
            argv: place.argv(argv),
            env: environment(file)?,
            input: Vec::new(),
            sandbox: place.sandbox,
            confines: place.confines(file, workspace),
            memory_bytes: file.memory_bytes,
        };
        let Kept { child, out, mut err, control } = command.stream().await?;
        let (report, input) = control.into_split();
        let said = Arc::new(Mutex::new(Capture::new(SAID_BYTES)));
        let heard = Arc::clone(&said);
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            while let Ok(count @ 1..) = err.read(&mut buffer).await {
                heard.lock().expect("nobody breaks off holding it").push(&buffer[..count]);
            }
        });
        let greeting = serve_client_with_lifecycle((), (out, input), mode);
        let greeted = tokio::time::timeout(file.limits.timeout, greeting).await;
        let said_now = || said.lock().expect("nobody breaks off holding it").text();
        let service = match greeted {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => {
                let what = format!("the server does not greet: {error}\n{}", said_now());
                let action = "run the server's command by hand";
                return Err(EffectError::new("mcp.greeting", Blame::Tool, what.trim_end(), action));
            }
            Err(_) => return Err(broken(&format!("it does not greet in time\n{}", said_now()))),
        };
        Ok(Link { service, said, child: tokio::sync::Mutex::new((child, report)) })
    }

    /// Whether the server can still be called.
    pub(super) fn is_open(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    /// Every tool that the server has.
    pub(super) async fn tools(&self) -> Result<Vec<Described>, EffectError> {
        let tools = self.service.list_all_tools().await;
        tools.map_err(|error| broken(&format!("it does not list its tools: {error}")))
    }

    /// Calls a tool. A cancellation is told to the server and not waited for.
    pub(super) async fn call(&self, name: &str, call: &Call) -> Told {
        let mut params = CallToolRequestParams::new(name.to_owned());
        if let Value::Object(args) = &call.args {
            params = params.with_arguments(args.clone());
        }
        let mut meta = RequestMetaObject::default();
        meta.0.0.insert("starling/idempotency_key".to_owned(), json!(call.idempotency_key));
        let mut options = PeerRequestOptions::no_options();
        options.meta = Some(meta);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.service.send_cancellable_request(request, options).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(error) => return self.told_error(&error),
        };
        let why = tokio::select! {
            said = &mut handle.rx => return match said {
                Ok(Ok(ServerResult::CallToolResult(result))) => {
                    Told::Result(serde_json::to_value(result).expect("a result is JSON"))
                }
                Ok(Ok(_)) => self.told_error(&ServiceError::UnexpectedResponse),
                Ok(Err(error)) => self.told_error(&error),
                Err(_) => self.told_error(&ServiceError::TransportClosed),
            },
            () = call.cancel.cancelled() => {
                let what = "it was cancelled while the server worked on it";
                EffectError::new("mcp.cancelled", Blame::Caller, what, "look what it has done")
            }
            () = tokio::time::sleep(call.timeout) => {
                let what = "the server did not answer in time";
                let action = "give it more time, or less to do";
                EffectError::new("mcp.timeout", Blame::Tool, what, action).retryable()
            }
        };
        // The server may be gone or not listen; its process is ended in any case.
        drop(handle.cancel(Some(why.message.clone())).await);
        Told::Nothing(why)
    }

    fn told_error(&self, error: &ServiceError) -> Told {
        let said = self.said.lock().expect("nobody breaks off holding it").text();
        match error {
            ServiceError::McpError(error) => {
                let what = format!("the server refuses: {}", error.message);
                let action = "correct the arguments, or see what the server says";
                Told::Refused(EffectError::new("mcp.refused", Blame::Caller, what, action))
            }
            error => {
                let what = format!("the connection to the server broke: {error}\n{said}");
                let action = "see why the server ended";
                let error = EffectError::new("mcp.closed", Blame::Tool, what.trim_end(), action);
                Told::Nothing(error.retryable())
            }
        }
    }

    /// Ends the server and waits until it is gone.
    pub(super) async fn close(self) {
        drop(self.service.cancel().await);
        let (mut child, mut report) = self.child.into_inner();
        let mut rest = Vec::new();
        // Its keeper closes its end when nobody is left.
        drop(report.read_to_end(&mut rest).await);
        drop(child.wait().await);
    }
}
