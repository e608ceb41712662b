//! Every attack of the catalogue is played through the proxy of the binary, against the policy of its page.

use ::http::Method;
use serde_json::{Value, json};
use sluice_risk::{Attack, ScenarioCall, ScenarioOutcome, attacks};
use sluice_testkit::FakeServer;
use sluice_testkit::mcp_server::tool;

use crate::world::{Agent, Connected, World, decision, id, passed, setup};

/// A limit must stop the attack within so many calls.
const MOST_CALLS: usize = 60;

fn named(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| tool(name, "As the attack's page calls it.")).collect()
}

/// The page's policy, but a call that waits for a person is told so at once.
fn unheld(policy: &Value) -> Value {
    let mut policy = policy.clone();
    for rules in policy["tools"].as_object_mut().into_iter().flat_map(|tools| tools.values_mut()) {
        if rules["approve_if"].is_array() {
            rules["approval"]["hold"] = json!("0s");
        }
    }
    policy
}

/// Connects a server that has the attack's tools, under the page's policy. Ordinary work is done first,
/// while nothing has changed yet; then what the scenario says happens to the server's tools.
async fn connect(world: &World, upstream: &FakeServer, attack: &Attack) -> Agent {
    let scenario = &attack.scenario;
    let mut known: Vec<&str> =
        scenario.still_passes.iter().map(|call| call.tool.as_str()).collect();
    if scenario.known && !known.contains(&scenario.tool.as_str()) {
        known.push(&scenario.tool);
    }
    if known.is_empty() {
        known.push("something_else");
    }
    upstream.tools(named(&known));
    let connected = world.connect(&attack.slug, &upstream.url(), unheld(&attack.policy)).await;
    let path = format!("/servers/{}", connected.server);
    if let Some(on_drift) = scenario.on_drift {
        world.must(Method::PATCH, &path, json!({"on_drift": on_drift}), 200).await;
    }
    let agent = connected.agent();
    work(world, upstream, &agent, attack).await;
    if scenario.changed {
        let mut tools = named(&known);
        for tool in &mut tools {
            tool["description"] = json!("It does something else now.");
        }
        upstream.tools(tools);
        world.must(Method::POST, &format!("{path}/refresh"), json!({}), 200).await;
    }
    if !scenario.known {
        // The server offers it to agents, but nobody has reviewed it.
        known.push(&scenario.tool);
        upstream.tools(named(&known));
    }
    another(world, &connected).await
}

/// A second grant under the same policy: what the proxy knows of it is read after all that happened.
async fn another(world: &World, connected: &Connected) -> Agent {
    let path = format!("/servers/{}", connected.server);
    let policies = world.must(Method::GET, &format!("{path}/policies"), Value::Null, 200).await;
    let body = json!({"label": "attacked", "policy_id": id(&policies["items"][0])});
    let grant = world.create(&format!("{path}/grants"), body).await;
    let token = grant["token"].as_str().expect("a token").to_owned();
    Connected { token, ..connected.clone() }.agent()
}

async fn call(world: &World, agent: &Agent, call: &ScenarioCall) -> Value {
    agent.call(&world.sluice, &call.tool, call.arguments.clone()).await
}

async fn play(world: &World, attack: &Attack) {
    let upstream = FakeServer::start().await;
    let agent = connect(world, &upstream, attack).await;
    let (slug, scenario) = (&attack.slug, &attack.scenario);
    let attacking =
        ScenarioCall { tool: scenario.tool.clone(), arguments: scenario.arguments.clone() };
    let before = upstream.calls_of(&scenario.tool);
    let first = call(world, &agent, &attacking).await;
    let ran = upstream.calls_of(&scenario.tool) - before;
    match scenario.outcome {
        ScenarioOutcome::Deny => {
            assert!(!passed(&first) && decision(&first)["code"].is_string(), "{slug}: {first}");
            assert_ne!(decision(&first)["code"], "unknown_tool", "{slug}: {first}");
            assert_eq!(ran, 0, "{slug} reached the server");
        }
        ScenarioOutcome::Hide => {
            assert!(!passed(&first), "{slug}: {first}");
            assert_eq!(ran, 0, "{slug} reached the server");
            let shown = agent.tools(&world.sluice).await;
            assert!(!shown.contains(&scenario.tool), "{slug} is listed: {shown:?}");
        }
        ScenarioOutcome::Approve => {
            assert_eq!(decision(&first)["code"], "approval_pending", "{slug}: {first}");
            assert_eq!(ran, 0, "{slug} reached the server");
        }
        ScenarioOutcome::Limit => {
            assert!(passed(&first), "{slug}: {first}");
            let mut last = first;
            for _ in 0..MOST_CALLS {
                last = call(world, &agent, &attacking).await;
                if !passed(&last) {
                    break;
                }
            }
            assert_eq!(decision(&last)["code"], "rate_limited", "{slug}: {last}");
            assert!(upstream.calls_of(&scenario.tool) < MOST_CALLS, "{slug} is not stopped");
        }
    }
}

async fn work(world: &World, upstream: &FakeServer, agent: &Agent, attack: &Attack) {
    let (slug, Some(work)) = (&attack.slug, &attack.scenario.still_passes) else { return };
    let before = upstream.calls_of(&work.tool);
    let answer = call(world, agent, work).await;
    let waits = decision(&answer)["code"] == "approval_pending";
    assert!(passed(&answer) || waits, "{slug}: ordinary work is refused: {answer}");
    assert_eq!(upstream.calls_of(&work.tool), before + usize::from(!waits), "{slug}");
}

#[tokio::test]
async fn every_attack_of_the_catalogue_is_stopped_on_the_wire() {
    let world = World::start(setup()).await;
    assert!(attacks().len() >= 30, "about thirty kinds");
    for attack in attacks() {
        play(&world, attack).await;
    }
    world.sluice.stop().await;
}
