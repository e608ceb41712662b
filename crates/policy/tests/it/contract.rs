//! The language's page read by somebody who wants it to be wrong: odd documents and odd calls, each
//! with what the page says of it. The rows are calls as `sluice policy eval` reads them.

use sluice_policy::{CallFile, check, compile};

use crate::support::now;

/// A tool's entry, the arguments, and `outcome code` or `outcome code rule` (of the tool).
const ENTRIES: &str = r#"
// Numbers by exact value, however they are written; nothing else is a number.
{"require":[{"conditions":[{"path":"args.a","op":"eq","value":100}]}]} => {"a":1e2} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"eq","value":0}]}]} => {"a":-0.0e9} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"eq","value":1}]}]} => {"a":true} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.a","op":"eq","value":"1"}]}]} => {"a":1} => deny require_failed /require/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"neq","value":1}]}]} => {"a":"1"} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"eq","value":9007199254740992}]}]} => {"a":9007199254740993} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"lt","value":1e400}]}]} => {"a":9.99e399} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"gt","value":0}]}]} => {"a":1e-400} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"lte","value":100}]}]} => {"a":"50"} => deny require_failed /require/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"gt","value":100}]}]} => {"a":"50"} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"gt","value":100}]}]} => {"a":[1]} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"gt","value":100}]}]} => {} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.a","op":"gt","value":100}]}]} => {"a":null} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"lte","value":100}]}]} => {} => deny require_failed /require/0
// Lists and objects by structure; a list is not its element.
{"require":[{"conditions":[{"path":"args.a","op":"eq","value":{"x":1,"y":[2]}}]}]} => {"a":{"y":[2.0],"x":1}} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"eq","value":[1,2]}]}]} => {"a":[2,1]} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.a","op":"in","value":["/a"]}]}]} => {"a":["/a","/etc/x"]} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.a","op":"in","value":["/a"]}]}]} => {"a":{"0":"/a"}} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.a","op":"in","value":[[1],null]}]}]} => {"a":[1.0]} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"in","value":[null]}]}]} => {"a":null} => deny require_failed /require/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"not_in","value":["a"]}]}]} => {"a":null} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.a","op":"contains","value":1}]}]} => {"a":["1",1.00]} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"contains","value":1}]}]} => {"a":"1"} => deny deny_if_matched /deny_if/0
{"require":[{"conditions":[{"path":"args.a","op":"contains","value":"b"}]}]} => {"a":["abc"]} => deny require_failed /require/0
// Strings by characters, not bytes; anchored only where the expression says so.
{"require":[{"conditions":[{"path":"args.a","op":"length_lte","value":2}]}]} => {"a":"\ud83d\ude00é"} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"length_lte","value":1}]}]} => {"a":"e\u0301"} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.a","op":"length_lte","value":9}]}]} => {"a":{"x":1}} => deny require_failed /require/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"regex","value":"etc"}]}]} => {"a":"/x/etc/y"} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.a","op":"regex","value":"^etc$"}]}]} => {"a":"x\netc"} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.a","op":"regex","value":"."}]}]} => {"a":7} => deny deny_if_matched /deny_if/0
{"require":[{"conditions":[{"path":"args.a","op":"starts_with","value":"A"}]}]} => {"a":"\u0041bc"} => allow allowed
// Present and not null.
{"require":[{"conditions":[{"path":"args.a","op":"exists"}]}]} => {"a":null} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.a","op":"exists","value":false}]}]} => {"a":null} => allow allowed
{"require":[{"conditions":[{"path":"args.a","op":"exists"}]}]} => {"a":false} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.a.b","op":"exists","value":false}]}]} => {"a":"x"} => deny deny_if_matched /deny_if/0
// Ways into the arguments.
{"require":[{"conditions":[{"path":"args[\"odd.key\"]","op":"eq","value":1}]}]} => {"odd.key":1} => allow allowed
{"require":[{"conditions":[{"path":"args.odd.key","op":"eq","value":1}]}]} => {"odd.key":1} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args[\"\\u0061\"]","op":"eq","value":1}]}]} => {"\u0061":1} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.l[1]","op":"eq","value":1}]}]} => {"l":[1]} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.l[0]","op":"eq","value":1}]}]} => {"l":{"0":1}} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.a.b","op":"eq","value":1}]}]} => {"a":[{"b":1}]} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.a.b","op":"eq","value":1}]}]} => {"a":null} => allow allowed
// Every element in `require`, any in the others; an empty list is neither; `not` swaps.
{"require":[{"conditions":[{"path":"args.l[*]","op":"lte","value":5}]}]} => {"l":[1,5]} => allow allowed
{"require":[{"conditions":[{"path":"args.l[*]","op":"lte","value":5}]}]} => {"l":[1,"5"]} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.l[*]","op":"lte","value":5}]}]} => {"l":[]} => deny require_failed /require/0
{"deny_if":[{"conditions":[{"path":"args.l[*]","op":"gt","value":5}]}]} => {"l":[]} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.l[*]","op":"gt","value":5}]}]} => {"l":[1,"x"]} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"path":"args.l[*]","op":"gt","value":5}]}]} => {"l":"x"} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"not":{"path":"args.l[*]","op":"in","value":["a"]}}]}]} => {"l":["a","b"]} => deny deny_if_matched /deny_if/0
{"require":[{"conditions":[{"not":{"path":"args.l[*]","op":"eq","value":"b"}}]}]} => {"l":["a","b"]} => deny require_failed /require/0
{"require":[{"conditions":[{"path":"args.l[*].id","op":"starts_with","value":"i"}]}]} => {"l":[{"id":"i1"},{}]} => deny require_failed /require/0
{"deny_if":[{"conditions":[{"path":"args.l[*].id","op":"eq","value":"x"}]}]} => {"l":[{},{"id":"x"}]} => deny deny_if_matched /deny_if/0
// Three truth values.
{"require":[{"conditions":[{"not":{"path":"args.a","op":"gt","value":5}}]}]} => {} => deny require_failed /require/0
{"deny_if":[{"conditions":[{"not":{"path":"args.a","op":"lte","value":5}}]}]} => {"a":"1"} => deny deny_if_matched /deny_if/0
{"deny_if":[{"conditions":[{"not":{"path":"args.a","op":"lte","value":5}}]}]} => {} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.a","op":"gt","value":5},{"path":"args.b","op":"eq","value":1}]}]} => {"a":"x","b":2} => allow allowed
{"deny_if":[{"conditions":[{"path":"args.a","op":"gt","value":5},{"path":"args.b","op":"eq","value":1}]}]} => {"a":"x"} => deny deny_if_matched /deny_if/0
{"require":[{"conditions":[{"any":[{"path":"args.a","op":"gt","value":5},{"path":"args.b","op":"eq","value":1}]}]}]} => {"a":"x","b":1} => allow allowed
{"require":[{"conditions":[{"any":[{"path":"args.a","op":"gt","value":5},{"path":"args.b","op":"eq","value":1}]}]}]} => {"a":"x","b":2} => deny require_failed /require/0
{"approve_if":[{"conditions":[{"path":"args.a","op":"gt","value":5}]}]} => {"a":"x"} => approve approval_pending /approve_if/0
{"approve_if":[{"conditions":[{"path":"args.a","op":"gt","value":5}]}]} => {} => allow allowed
// The order: the first `require`, then `deny_if`, amounts, limits, and last the person.
{"deny_if":[{"conditions":[]}],"require":[{"conditions":[{"path":"args.a","op":"exists"}]}]} => {} => deny require_failed /require/0
{"approve_if":[{"conditions":[]}],"limits":[{"counter":"c","window":"day","max":0}]} => {} => deny rate_limited /limits/0
{"limits":[{"counter":"c","window":"day","max":1},{"counter":"n","window":"day","max":5,"increment_from":"args.n"}]} => {} => deny amount_invalid /limits/1
{"limits":[{"counter":"n","window":"day","max":5,"increment_from":"args.n"}]} => {"n":-1} => deny amount_invalid /limits/0
{"limits":[{"counter":"n","window":"day","max":5,"increment_from":"args.n"}]} => {"n":"1"} => deny amount_invalid /limits/0
{"limits":[{"counter":"n","window":"day","max":5,"increment_from":"args.n"}]} => {"n":0.0000000001} => deny amount_invalid /limits/0
{"limits":[{"counter":"n","window":"day","max":5,"increment_from":"args.n"}]} => {"n":1e15} => deny amount_invalid /limits/0
{"limits":[{"counter":"n","window":"day","max":0.3,"increment_from":"args.n"}]} => {"n":0.30} => allow allowed
{"limits":[{"counter":"n","window":"day","max":5,"increment_from":"args.n"}]} => {"n":5.000000001} => deny rate_limited /limits/0
// Short forms decide as their long forms.
{"rate_limit":"0/minute"} => {} => deny rate_limited /limits/0
{"rate_limit":{"max":1,"window":60},"limits":[{"counter":"x","window":"day","max":0}]} => {} => deny rate_limited /limits/0
{"action":"deny","reason":"r"} => {} => deny deny_if_matched /deny_if/0
{"action":"require_approval","approve_if":[{"conditions":[{"path":"args.a","op":"exists"}]}]} => {} => approve approval_pending /approve_if/1
{"action":"hide"} => {} => deny unknown_tool (hidden)
{"action":"allow"} => {"a":1} => allow allowed
"#;

/// Rows of three parts; lines that begin with `//` say what follows.
fn rows(table: &'static str) -> Vec<[&'static str; 3]> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with("//"));
    let row = |line: &'static str| line.split(" => ").collect::<Vec<_>>();
    lines.map(row).map(|parts| parts.try_into().expect("three parts")).collect()
}

#[test]
fn odd_calls_are_decided_as_the_page_says() {
    let rows = rows(ENTRIES);
    assert!(rows.len() >= 70, "{}", rows.len());
    for [entry, arguments, wanted] in rows {
        let document = format!(r#"{{"version":"1","default":"deny","tools":{{"t":{entry}}}}}"#);
        let policy = compile(&document).unwrap_or_else(|p| panic!("{document}: {p:#?}"));
        let call = format!(r#"{{"tool":"t","arguments":{arguments}}}"#);
        let call = CallFile::parse(&call).unwrap_or_else(|error| panic!("{call}: {error}"));
        let decision = call.decide(&policy, now()).expect("a decision");
        let rule = decision.rule.strip_prefix("/tools/t").unwrap_or(&decision.rule);
        let found = format!("{} {} {rule}", decision.outcome().as_str(), decision.code);
        assert_eq!(found.trim_end(), wanted, "{entry} on {arguments}");
    }
}

/// A whole document, a call, and what becomes of it.
const DOCUMENTS: &str = r#"
// `all_tools` never widens access, and comes before the tool's own rules.
{"version":"1","default":"deny","all_tools":{"require":[]}} => {"tool":"t"} => deny default_deny (default deny)
{"version":"1","default":"allow","all_tools":{"deny_if":[{"conditions":[]}]}} => {"tool":"t"} => deny deny_if_matched /all_tools/deny_if/0
{"version":"1","default":"deny","all_tools":{"require":[{"conditions":[{"path":"args.b","op":"exists"}]}]},"tools":{"t":{"require":[{"conditions":[{"path":"args.a","op":"exists"}]}]}}} => {"tool":"t"} => deny require_failed /all_tools/require/0
// Names are exact, and their case counts.
{"version":"1","default":"deny","tools":{"delete_note":{}}} => {"tool":"Delete_Note"} => deny default_deny (default deny)
{"version":"1","default":"deny","tools":{"delete_note":{}}} => {"tool":"delete_note "} => deny default_deny (default deny)
{"version":"1","default":"deny","tools":{"delete_note":{}}} => {"tool":"delete_note\u0000"} => deny default_deny (default deny)
// An exact name beats a pattern, more letters beat fewer, `hide` beats all.
{"version":"1","default":"deny","tools":{"a*":{"action":"deny"},"ab":{}}} => {"tool":"ab"} => allow allowed
{"version":"1","default":"deny","tools":{"a*":{},"ab*":{"action":"deny"}}} => {"tool":"abc"} => deny deny_if_matched /tools/ab*/deny_if/0
{"version":"1","default":"allow","hide":["a?"],"tools":{"ab":{}}} => {"tool":"ab"} => deny unknown_tool (hidden)
{"version":"1","default":"allow","hide":["a?"]} => {"tool":"aé"} => deny unknown_tool (hidden)
{"version":"1","default":"allow","hide":["a?"]} => {"tool":"a"} => allow allowed
{"version":"1","default":"allow","hide":["*"]} => {"tool":"anything"} => deny unknown_tool (hidden)
// Facts that are not there are missing, and hours and days are UTC.
{"version":"1","default":"allow","all_tools":{"deny_if":[{"conditions":[{"path":"session.client_name","op":"neq","value":"x"}]}]}} => {"tool":"t"} => allow allowed
{"version":"1","default":"allow","all_tools":{"require":[{"conditions":[{"path":"tool.severity","op":"neq","value":"Critical"}]}]}} => {"tool":"t"} => deny require_failed /all_tools/require/0
{"version":"1","default":"allow","all_tools":{"deny_if":[{"conditions":[{"path":"call.weekday_utc","op":"eq","value":"sun"},{"path":"call.hour_utc","op":"eq","value":23.0}]}]}} => {"tool":"t","context":{"now":"2026-11-30T01:30:00+02:00"}} => deny deny_if_matched /all_tools/deny_if/0
// What only observes lets through, and says what it would have said.
{"version":"1","mode":"observe","default":"deny"} => {"tool":"t"} => allow default_deny (default deny)
{"version":"1","mode":"observe","default":"allow","hide":["t"]} => {"tool":"t"} => allow unknown_tool (hidden)
{"version":"1","mode":"observe","default":"deny","tools":{"t":{"action":"require_approval"}}} => {"tool":"t"} => allow approval_pending /tools/t/approve_if/0
// A name that looks like a pointer has an escaped one.
{"version":"1","default":"deny","tools":{"a/b~c":{"action":"deny"}}} => {"tool":"a/b~c"} => deny deny_if_matched /tools/a~1b~0c/deny_if/0
"#;

#[test]
fn odd_documents_decide_as_the_page_says() {
    for [document, call, wanted] in rows(DOCUMENTS) {
        let policy = compile(document).unwrap_or_else(|p| panic!("{document}: {p:#?}"));
        let call = CallFile::parse(call).unwrap_or_else(|error| panic!("{call}: {error}"));
        let decision = call.decide(&policy, now()).expect("a decision");
        let (outcome, code) = (decision.outcome().as_str(), decision.code);
        let found = format!("{outcome} {code} {}", decision.rule);
        assert_eq!(found.trim_end(), wanted, "{document}");
    }
}

/// Arguments that two readers could read differently never reach a rule.
#[test]
fn arguments_that_can_be_read_in_two_ways_are_not_decided_on() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let policy = compile(r#"{"version":"1","default":"allow"}"#).expect("a policy");
    for arguments in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"o":{"x":1,"x":1}}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":01}"#,
        r#"{"a":1.}"#,
        r#"{"a":NaN}"#,
        "[]",
        "null",
        &deep,
    ] {
        let text = format!(r#"{{"tool":"t","arguments":{arguments}}}"#);
        let decided = CallFile::parse(&text).and_then(|call| call.decide(&policy, now()));
        if arguments == "null" {
            // As if there were none.
            assert!(decided.is_ok());
        } else {
            assert!(decided.is_err(), "{arguments}: {decided:?}");
        }
    }
}

/// What the page refuses: a document, a tool's entry or a condition, with the code of a problem that
/// must be among those told.
const REFUSED: &str = r#"
document unknown_word => {"version":"2","default":"deny"}
document wrong_type => {"version":1,"default":"deny"}
document missing_key => {"version":"1"}
document unknown_key => {"version":"1","default":"deny","Tools":{}}
document duplicate_key => {"version":"1","default":"deny","default":"deny"}
document unknown_key => {"version":"1","default":"deny","all_tools":{"rate_limit":"1/day"}}
document ambiguous_pattern => {"version":"1","default":"deny","tools":{"a?":{},"?b":{}}}
tool action_conflict => {"action":"deny","limits":[]}
tool action_conflict => {"action":"hide","reason":"r"}
tool misplaced_key => {"reason":"r"}
tool bad_rate => {"rate_limit":"10/fortnight"}
tool out_of_range => {"rate_limit":{"max":1.5,"window":60}}
tool bad_counter => {"limits":[{"counter":"C","window":"day","max":1}]}
tool bad_window => {"limits":[{"counter":"c","window":"32d","max":1}]}
tool bad_window => {"limits":[{"counter":"c","window":"0s","max":1}]}
tool out_of_range => {"limits":[{"counter":"c","window":"day","max":1.5}]}
tool out_of_range => {"limits":[{"counter":"c","window":"day","max":1.0000000001,"increment_from":"args.a"}]}
tool bad_path => {"limits":[{"counter":"c","window":"day","max":1,"increment_from":"call.hour_utc"}]}
tool bad_path => {"limits":[{"counter":"c","window":"day","max":1,"increment_from":"args.l[*]"}]}
tool counter_windows => {"limits":[{"counter":"c","window":"day","max":1},{"counter":"c","window":"hour","max":1}]}
tool bad_duration => {"approval":{"hold":"11m"}}
tool bad_duration => {"approval":{"expires":"8d"}}
tool out_of_range => {"approval":{"quorum":6}}
tool bad_approver => {"approval":{"approvers":["role:viewer"]}}
rule unknown_word => {"path":"args.a","op":"matches","value":1}
rule wrong_type => {"path":"args.a","op":"lte","value":"100"}
rule wrong_type => {"path":"args.a","op":"in","value":"a"}
rule out_of_range => {"path":"args.a","op":"length_lte","value":-1}
rule bad_path => {"path":"args[0]","op":"exists"}
rule bad_path => {"path":"args.a[01]","op":"exists"}
rule bad_regex => {"path":"args.a","op":"regex","value":"(?=a)"}
rule regex_too_large => {"path":"args.a","op":"regex","value":"\\w{900}{900}"}
rule too_deep => {"not":{"not":{"not":{"not":{"not":{"path":"args.a","op":"exists"}}}}}}
rule too_few => {"any":[]}
"#;

#[test]
fn what_the_page_refuses_is_refused_with_its_reason() {
    for line in REFUSED.lines().filter(|line| !line.is_empty()) {
        let (head, part) = line.split_once(" => ").expect("two parts");
        let (kind, code) = head.split_once(' ').expect("two words");
        let entry = match kind {
            "rule" => format!(r#"{{"require":[{{"conditions":[{part}]}}]}}"#),
            _ => part.to_owned(),
        };
        let document = match kind {
            "document" => part.to_owned(),
            _ => format!(r#"{{"version":"1","default":"deny","tools":{{"t":{entry}}}}}"#),
        };
        let checked = check(&document, None);
        let found: Vec<&str> = checked.problems.iter().map(|problem| problem.code).collect();
        assert!(!checked.ok && found.contains(&code), "{code} of {document}: {found:?}");
    }
}
