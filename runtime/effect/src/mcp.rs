//! Tools of servers that speak MCP: each is the effect `tool:NAME.TOOL`, with the server's schemas.
//!
//! The server is a command of the flock like any other, in the sandbox and under a keeper. It is
//! started once to ask what it has, and again when its first tool is called; then it stays. A tool
//! is opaque unless the file's `classes` say otherwise: what a server says of itself is no promise.

mod link;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as Described};
use serde_json::{Value, json};

use crate::answer::{Answer, RESULT_DEPTH_MAX, Seen, storable};
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::process::{Capture, KEPT_BYTES};
use crate::sandbox::Sandbox;
use crate::schema::Schema;
use crate::tools::file::ToolFile;
use crate::tools::tool::{Place, reconcile};
use crate::tools::{Named, ToolError};

use link::{Link, Told};

/// A server, and the connections to it: one for each workspace it works in.
#[derive(Debug)]
struct Server {
    file: ToolFile,
    place: Place,
    links: tokio::sync::Mutex<BTreeMap<Option<PathBuf>, Arc<Link>>>,
}

/// One tool of a server.
#[derive(Debug)]
struct ServerTool {
    server: Arc<Server>,
    name: String,
    class: Class,
    args: Schema,
    result: Option<Schema>,
}

/// The effects of a server: it is started, asked for its tools, and ended.
pub(crate) fn load(
    file: ToolFile,
    flock: &Path,
    sandbox: Sandbox,
) -> Result<Vec<Named>, ToolError> {
    let place = Place { flock: flock.to_owned(), sandbox };
    let described = std::thread::scope(|scope| {
        // On a thread of its own, since the caller may be inside a runtime.
        scope.spawn(|| ask(&file, &place)).join()
    });
    let described = described.unwrap_or_else(|_| Err(broken("the client broke off")));
    let path = file.path.clone();
    let described = described
        .map_err(|error| ToolError::Server { path: path.clone(), error: Box::new(error) })?;
    let wrong = |what: String| ToolError::File { path: path.clone(), line: 1, column: 1, what };
    for name in file.classes.keys() {
        if !described.iter().any(|tool| tool.name == *name) {
            let names: Vec<&str> = described.iter().map(|tool| tool.name.as_ref()).collect();
            let has = names.join(", ");
            return Err(wrong(format!("`classes` names `{name}`; the server has {has}")));
        }
    }
    let server = Arc::new(Server { file, place, links: tokio::sync::Mutex::default() });
    let tools = described.into_iter().map(|tool| {
        let effect = format!("tool:{}.{}", server.file.name, tool.name);
        let made = ServerTool::new(&server, &tool);
        let made = made.map_err(|what| wrong(format!("the schema of {effect}: {what}")))?;
        Ok((effect, Arc::new(made) as Arc<dyn Executor>))
    });
    tools.collect()
}

/// Starts the server only to ask for its tools.
fn ask(file: &ToolFile, place: &Place) -> Result<Vec<Described>, EffectError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken(&error.to_string()))?;
    runtime.block_on(async {
        let link = Link::open(file, place, None).await?;
        let tools = tokio::time::timeout(file.limits.timeout, link.tools()).await;
        let tools = tools.unwrap_or_else(|_| Err(broken("it does not say in time what it has")));
        link.close().await;
        tools
    })
}

fn broken(what: &str) -> EffectError {
    EffectError::new("mcp.broken", Blame::Tool, what, "run the server's command by hand")
}

impl Server {
    /// The connection that works in this workspace, made if there is none that is open.
    async fn link(&self, workspace: Option<PathBuf>) -> Result<Arc<Link>, EffectError> {
        let mut links = self.links.lock().await;
        if let Some(link) = links.get(&workspace).filter(|link| link.is_open()) {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(Link::open(&self.file, &self.place, workspace.clone()).await?);
        links.insert(workspace, Arc::clone(&link));
        Ok(link)
    }

    /// No later call uses this connection. With the last call on it the server ends.
    async fn retire(&self, link: &Arc<Link>) {
        self.links.lock().await.retain(|_, kept| !Arc::ptr_eq(kept, link));
    }
}

impl ServerTool {
    fn new(server: &Arc<Server>, tool: &Described) -> Result<Self, String> {
        let object = |schema: &JsonObject| Value::Object(schema.clone());
        let class = server.file.classes.get(tool.name.as_ref()).copied();
        let class = class.unwrap_or(server.file.class);
        if class == Class::Queryable && server.file.reconcile.is_none() {
            return Err("a queryable tool says how it is asked: `reconcile`".to_owned());
        }
        let result = tool.output_schema.as_ref().map(|schema| Schema::new(object(schema)));
        Ok(ServerTool {
            server: Arc::clone(server),
            name: tool.name.clone().into_owned(),
            class,
            args: Schema::new(object(&tool.input_schema))?,
            result: result.transpose()?,
        })
    }

    fn effect(&self) -> String {
        format!("tool:{}.{}", self.server.file.name, self.name)
    }

    fn doubtful(&self, error: EffectError) -> Answer {
        match self.class {
            Class::ReadOnly => Answer::Failed(error),
            _ => Answer::Unknown(error),
        }
    }

    async fn act(&self, call: &Call) -> Answer {
        if call.cancel.is_cancelled() {
            return Answer::Cancelled;
        }
        let workspace = call.workspace.as_ref();
        let workspace = workspace.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        let link = tokio::time::timeout(call.timeout, self.server.link(workspace)).await;
        let link = match link {
            Ok(Ok(link)) => link,
            Ok(Err(error)) => return Answer::Failed(error),
            Err(_) => return Answer::Failed(broken("it does not start in time").retryable()),
        };
        match link.call(&self.name, call).await {
            Told::Result(result) => self.judge(result),
            Told::Refused(error) => Answer::Failed(error),
            Told::Nothing(error) => {
                // Whatever it still does ends with the server, once nobody else waits for it.
                self.server.retire(&link).await;
                if error.kind == "mcp.cancelled" && self.class == Class::ReadOnly {
                    return Answer::Cancelled;
                }
                self.doubtful(error)
            }
        }
    }

    /// What a result of the protocol means.
    fn judge(&self, mut result: Value) -> Answer {
        let blocks = result["content"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let blocks: Vec<Value> = blocks.into_iter().map(shortened).collect();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        if result["isError"] == json!(true) {
            let error = EffectError::new("mcp.tool", Blame::Tool, text, "see what the tool says");
            return Answer::Failed(error);
        }
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        if let (Some(schema), Some(value)) = (&self.result, structured)
            && let Err(what) = schema.check(value)
        {
            let what = format!("its result does not fit its own schema: {what}");
            let error = EffectError::new("result.schema", Blame::Tool, what, "mend the server");
            return self.doubtful(error);
        }
        if let Err(what) = storable(&result, RESULT_DEPTH_MAX) {
            let what = format!("its result {what}");
            return self.doubtful(EffectError::new(
                "output.json",
                Blame::Tool,
                what,
                "mend the server",
            ));
        }
        let mut shown = json!({"content": blocks, "text": text});
        if let Some(value) = structured {
            shown["structured"] = value.clone();
        }
        Answer::Succeeded { result: shown, fingerprint: None }
    }
}

/// A block of content whose text is no longer than what is kept.
fn shortened(mut block: Value) -> Value {
    for field in ["text", "data"] {
        if let Some(text) = block[field].as_str().filter(|text| text.len() > KEPT_BYTES) {
            let mut kept = Capture::new(KEPT_BYTES);
            kept.push(text.as_bytes());
            kept.finish();
            block[field] = json!(kept.text());
        }
    }
    block
}

impl Executor for ServerTool {
    fn class(&self) -> Class {
        self.class
    }

    fn limits(&self) -> Limits {
        self.server.file.limits
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        let args = if args.is_null() { json!({}) } else { args.clone() };
        self.args.arguments(&self.effect(), &args)
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(self.act(call))
    }

    fn look<'a>(&'a self, call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(reconcile(&self.server.place, &self.server.file, self.class, call))
    }
}
