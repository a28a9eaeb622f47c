//! Tools of a server that speaks MCP: a tiny one written as a shell script, and, where the registry
//! is reached, a real one.

use std::fs;
use std::time::Duration;

use effect::{Answer, Class, Sandbox};
use serde_json::json;

use crate::support::{
    BOTH, Flock, act, block_on, failed, mark, processes_with, result, unknown, wait_for,
};

/// Answers by what stands in a line. `sleep` answers nothing; `fall` ends the server.
const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      reply '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}' ;;
    *'"method":"tools/list"'*) reply '"result":{"tools":[
      {"name":"add","inputSchema":{"type":"object","required":["a"],
        "properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}}},
        "outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}}}},
      {"name":"fall","inputSchema":{"type":"object"}},
      {"name":"sleep","inputSchema":{"type":"object"}},
      {"name":"wrong","inputSchema":{"type":"object"}}]}' | tr -d '\n' ; echo ;;
    *'"name":"add"'*) reply '"result":{"content":[{"type":"text","text":"42"}],"structuredContent":{"sum":42}}' ;;
    *'"name":"wrong"'*) reply '"result":{"content":[{"type":"text","text":"no such city"}],"isError":true}' ;;
    *'"name":"fall"'*) echo 'fell over' >&2; exit 3 ;;
    *'"name":"sleep"'*) while true; do sleep 0.05; : MARK; done & ;;
  esac
done
"#;

fn server(flock: &Flock) {
    let mark = mark(&flock.path());
    flock.script("tiny.sh", &SERVER.replace("MARK", &mark));
    let file = format!(
        "mcp = [\"tools/tiny.sh\", \"{mark}\"]\nclasses = {{ add = \"read_only\" }}\ntimeout = \"10s\""
    );
    fs::write(flock.path().join("tools/tiny.toml"), file).expect("written");
}

#[test]
fn each_tool_of_a_server_is_an_effect() {
    for sandbox in BOTH {
        let flock = Flock::new();
        server(&flock);
        let tools = effect::tools::load(&flock.path(), sandbox).expect("it answers");
        let names: Vec<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["tool:tiny.add", "tool:tiny.fall", "tool:tiny.sleep", "tool:tiny.wrong"]
        );
        let mark = mark(&flock.path());
        assert_eq!(processes_with(&mark), [0; 0], "it is ended after it was asked");
        block_on(async {
            let add = &tools[0].1;
            assert_eq!((add.class(), tools[1].1.class()), (Class::ReadOnly, Class::Opaque));
            assert_eq!(add.check(&json!({"a": 1})).expect("it fits"), json!({"a": 1, "b": 1}));
            assert_eq!(add.check(&json!({"b": 1})).expect_err("no a").kind, "arguments.schema");
            let call = flock.call("tool:tiny.add", json!({"a": 1}));
            let sum = result(act(&**add, call).await);
            assert_eq!((&sum["text"], &sum["structured"]), (&json!("42"), &json!({"sum": 42})));
            let wrong = failed(act(&*tools[3].1, flock.call("tool:tiny.wrong", json!({}))).await);
            assert_eq!((wrong.kind.as_str(), wrong.message.as_str()), ("mcp.tool", "no such city"));
            let fell = unknown(act(&*tools[1].1, flock.call("tool:tiny.fall", json!({}))).await);
            assert_eq!(fell.kind, "mcp.closed", "{fell}");
            // The next call has a server again.
            let again = act(&**add, flock.call("tool:tiny.add", json!({"a": 1}))).await;
            assert!(matches!(again, Answer::Succeeded { .. }), "{again:?}");
            let mut call = flock.call("tool:tiny.sleep", json!({}));
            call.timeout = Duration::from_millis(500);
            assert_eq!(unknown(act(&*tools[2].1, call).await).kind, "mcp.timeout");
            let call = flock.call("tool:tiny.sleep", json!({}));
            call.cancel.cancel();
            assert_eq!(tools[2].1.run(&call).await, Answer::Cancelled, "it never began");
        });
        drop(tools);
        wait_for("the server has ended", || processes_with(&mark).is_empty());
    }
}

#[test]
fn a_server_that_does_not_speak_is_told_with_its_file() {
    let flock = Flock::new();
    flock.script("mute.sh", "echo 'no module named mcp' >&2; exit 1");
    let file = "mcp = [\"tools/mute.sh\"]\ntimeout = \"2s\"";
    fs::write(flock.path().join("tools/mute.toml"), file).expect("written");
    let error = effect::tools::load(&flock.path(), Sandbox::Off).expect_err("it is mute");
    let said = error.to_string();
    assert!(said.contains("tools/mute.toml") && said.contains("no module named mcp"), "{said}");
}

/// A server from a registry, if the one who runs the tests has put its command there: as JSON, such
/// as `["npx", "-y", "@modelcontextprotocol/server-everything"]`.
#[test]
fn a_real_server_is_called() {
    let Ok(command) = std::env::var("STARLING_MCP_SERVER") else { return };
    let flock = Flock::new();
    let file = format!("mcp = {command}\neffects = [\"network\"]\ntimeout = \"60s\"");
    fs::write(flock.path().join("tools/real.toml"), file).expect("written");
    let tools = effect::tools::load(&flock.path(), Sandbox::Off).expect("it answers");
    let echo = tools.iter().find(|(name, _)| name == "tool:real.echo").expect("it has echo");
    let call = flock.call("tool:real.echo", json!({"message": "hello"}));
    let said = result(block_on(act(&*echo.1, call)));
    assert!(said["text"].as_str().is_some_and(|text| text.contains("hello")), "{said}");
}
