//! Every code that a refusal can carry: the one list. A code that is not in it does not compile, and the
//! handbook (`/docs/api`) shows each under its own anchor, which is where a problem's `type` leads.

use std::fmt::{self, Write};

use serde::{Serialize, Serializer};

/// A stable word for what went wrong: what a program goes by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProblemCode(&'static str);

impl ProblemCode {
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The code by its word, as the store and the crates below know it.
    pub fn of(word: &str) -> Self {
        let mut all = GROUPS.iter().flat_map(|(_, codes)| codes.iter());
        all.find(|(code, _)| code.0 == word).map_or(INVALID, |(code, _)| *code)
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

impl Serialize for ProblemCode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0)
    }
}

impl PartialEq<str> for ProblemCode {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for ProblemCode {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// The list as Markdown: a table for each group, every code a link to itself.
pub fn page() -> String {
    let mut out = String::new();
    for (group, codes) in GROUPS {
        let _ =
            write!(out, "### {group}\n\n| code | what happened, and what to do |\n| --- | --- |\n");
        for (code, words) in *codes {
            let _ = writeln!(out, "| [`{code}`](#{code}) | {words} |");
        }
        out.push('\n');
    }
    out
}

macro_rules! codes {
    ($($group:literal { $($name:ident $code:literal $words:literal)+ })+) => {
        $($(#[doc = $words] pub const $name: ProblemCode = ProblemCode($code);)+)+

        /// Every code with what it means, by what it is about.
        pub const GROUPS: &[(&str, &[(ProblemCode, &str)])] =
            &[$(($group, &[$(($name, $words)),+])),+];
    };
}

codes! {
    "Any request" {
        NOT_FOUND "not_found" "There is nothing of this name or id, or it is not yours to see. Ids are lower-case UUIDs."
        METHOD_NOT_ALLOWED "method_not_allowed" "The address does not take this method; `Allow` lists those it does."
        INVALID_JSON "invalid_json" "The body is not valid JSON; `detail` says where it breaks."
        BODY_CUT "body_cut" "The body ended before it was whole. Send it again."
        TOO_LARGE "too_large" "The body or the document is larger than its bound, which `detail` names."
        UNSUPPORTED_MEDIA_TYPE "unsupported_media_type" "Send the body as JSON, with `Content-Type: application/json`."
        WRONG_HOST "wrong_host" "Sluice does not answer for the host name of this request; the operator lists them with `--allowed-hosts`."
        RATE_LIMITED "rate_limited" "This token has sent too many requests. Wait as long as `Retry-After` says."
        TOO_MANY_ATTEMPTS "too_many_attempts" "Too many attempts at something that can be guessed, or that sends mail. Wait as long as `Retry-After` says."
        UNAVAILABLE "unavailable" "The database, the counters or the mail server cannot be reached. Try again in a moment."
        INTERNAL "internal" "Something broke in Sluice. The operator finds the cause in the log, under this answer's `X-Request-Id`."
    }
    "Who is calling" {
        UNAUTHENTICATED "unauthenticated" "There is no API token, or it is mistyped, revoked or expired. Send `Authorization: Bearer slu_…`."
        ROLE_TOO_LOW "role_too_low" "Your role, or the token's, may not do this. Ask an admin of the workspace."
        WORKSPACE_SUSPENDED "workspace_suspended" "The operator suspended the workspace: it can be read and not changed, and its grants are refused."
        PROVIDER_REQUIRED "provider_required" "The workspace lets its members in by one identity provider alone. Sign in by it."
        LOGIN_NEEDED "login_needed" "This is for a person who is signed in; an API token cannot do it."
        LOGIN_TOO_OLD "login_too_old" "For this, sign in anew: the login is older than 15 minutes."
        LOGIN_OVER "login_over" "The first step of signing in was more than ten minutes ago, or was used. Begin again."
        SIGN_IN "sign_in" "The link is not enough here; sign in first."
        BAD_CREDENTIALS "bad_credentials" "The e-mail address or the password is wrong. Which one is not told."
        ACCOUNT_DISABLED "account_disabled" "The operator switched this account off."
        SIGNUP_CLOSED "signup_closed" "Accounts are made by invitation, or by the operator alone."
        FORM_EXPIRED "form_expired" "The form belongs to another login. Load the page again and send it once more."
        FOREIGN_ORIGIN "foreign_origin" "The request came from a page of another site."
    }
    "What was sent" {
        INVALID "invalid" "The value does not fit here; `detail` says what does."
        INVALID_QUERY "invalid_query" "A query parameter cannot be read."
        INVALID_CURSOR "invalid_cursor" "The cursor is not one that this list gave. Begin with the first page."
        INVALID_FILTER "invalid_filter" "A filter of the log cannot be read."
        INVALID_FORM "invalid_form" "The form cannot be read."
        UNKNOWN_FIELD "unknown_field" "There is no field or parameter of this name here. Nothing is ignored in silence."
        MISSING_FIELD "missing_field" "A field that is needed is missing."
        DUPLICATE_FIELD "duplicate_field" "The field stands twice."
        REQUIRED "required" "The value may not be empty."
        MISSING "missing" "A part that the others need is missing."
        TOO_SHORT "too_short" "The password has too few characters; `detail` names the bound."
        TOO_WEAK "too_weak" "The password is easily guessed."
        TOO_LONG "too_long" "The text is longer than it may be."
        OUT_OF_RANGE "out_of_range" "The number, the span or the time is outside its bounds, which `detail` names."
        IN_THE_PAST "in_the_past" "This time has passed already."
        AMBIGUOUS "ambiguous" "Two things were given of which one is meant."
        INVISIBLE_CHARACTER "invisible_character" "Names may not hold invisible or direction-turning characters."
        UNKNOWN_VALUE "unknown_value" "The word is none of those that the field takes."
        UNKNOWN_REFERENCE "unknown_reference" "It names something that does not exist."
        BAD_DURATION "bad_duration" "A span is a number and a unit, as in `15m`, `24h` or `7d`."
        INVALID_WINDOW "invalid_window" "A window is a word or a span, as in `minute` or `15m`."
        INVALID_NAME "invalid_name" "A counter's name has letters, digits, `_` and `-`."
        BAD_IDEMPOTENCY_KEY "bad_idempotency_key" "An `Idempotency-Key` has 1 to 255 printable ASCII characters."
        NOT_CONFIRMED "not_confirmed" "Type the workspace's address to confirm."
        BAD_TOKEN "bad_token" "This is no token of Sluice: its checksum does not fit."
        BAD_HASH "bad_hash" "This is no hash of an admin event."
        TEXT_LENGTH "text_length" "The report's text is too short or too long."
        CONTACT_LENGTH "contact_length" "The contact of the report is too long."
        PAGE "page" "The report is not about a page of the catalogue."
    }
    "Two at once" {
        IF_MATCH_REQUIRED "if_match_required" "Somebody else may have edited this. Read it, and send its `ETag` as `If-Match`."
        STALE "stale" "Somebody else changed it since you read it; `current` is how it stands now. Put your change into that and send its `ETag`."
        EDITED_MEANWHILE "edited_meanwhile" "The server was edited while its tools were read. Try again."
        CHANGED_MEANWHILE "changed_meanwhile" "Somebody changed the workspace while the files were applied. Look at a new plan."
        TOOL_CHANGED "tool_changed" "The tool's definition is another one than you looked at. Look again."
        IDEMPOTENCY_IN_PROGRESS "idempotency_in_progress" "The first request with this `Idempotency-Key` is still being done."
        IDEMPOTENCY_MISMATCH "idempotency_mismatch" "This `Idempotency-Key` was used for another request. Take a new one."
        CONFLICT "conflict" "It collides with something that exists."
    }
    "Workspaces and people" {
        BAD_EMAIL "bad_email" "This is no e-mail address; one looks like ann@example.com."
        EMAIL_TAKEN "email_taken" "The address has an account. Sign in instead."
        EMAIL_UNVERIFIED "email_unverified" "The identity provider does not say that the address is yours."
        BAD_SLUG "bad_slug" "A workspace's address has lower-case letters, digits and single hyphens."
        SLUG_TAKEN "slug_taken" "The workspace's address is taken."
        TOO_MANY "too_many" "There are as many as there may be; `detail` names the bound. Delete some, or ask the operator."
        ALREADY_MEMBER "already_member" "The person is a member of this workspace already."
        UNKNOWN_MEMBER "unknown_member" "The workspace has no such member."
        UNKNOWN_ROLE "unknown_role" "The roles are `viewer`, `policy_manager` and `admin`."
        IS_SELF "is_self" "A workspace is handed over to somebody else than yourself."
        LAST_ADMIN "last_admin" "A workspace keeps one admin: make somebody else one first."
        INVITE_FOR_ANOTHER "invite_for_another" "The invitation is for another e-mail address than that of your account."
        BAD_DOMAIN "bad_domain" "This is no e-mail domain; one looks like example.com."
        PUBLIC_DOMAIN "public_domain" "Anybody gets an address at this domain, so its people cannot be let in together."
        DOMAIN_TAKEN "domain_taken" "People of this domain may join already."
        UNCONFIRMED_ADDRESS "unconfirmed_address" "Only an admin with a confirmed address of the domain may open it."
        ROLE_TOO_HIGH "role_too_high" "Nobody becomes an admin by joining."
        NOT_YOUR_DOMAIN "not_your_domain" "Only an admin whose own address is of exactly this domain may open it."
        UNKNOWN_PROVIDER "unknown_provider" "This Sluice has no identity provider of that name."
        COME_BY_IT_FIRST "come_by_it_first" "Sign in by the provider first: an admin must be able to come that way."
    }
    "Signing in" {
        WRONG_PASSWORD "wrong_password" "The password is not that of the account."
        BAD_CODE "bad_code" "The code is wrong or was used. Take the one that the app shows now, or a recovery code."
        SECOND_FACTOR_ON "second_factor_on" "Two-step sign-in is on already."
        SECOND_FACTOR_OFF "second_factor_off" "Two-step sign-in is off."
        SET_UP_OVER "set_up_over" "The set-up was begun more than an hour ago, or anew. Begin again."
        BAD_PASSKEY "bad_passkey" "The passkey's answer does not fit what was asked."
        NO_PASSKEYS "no_passkeys" "Passkeys need https with a host name, or localhost."
        PASSKEY_TAKEN "passkey_taken" "This passkey is registered already."
        LAST_WAY_IN "last_way_in" "It is the last way into the account. Set a password first."
        NO_MAIL "no_mail" "This Sluice sends no mail. The operator can run `sluice admin reset-password`."
        LINK_USED "link_used" "The link was used, has expired, or a newer one was sent."
        LINK_FIRST "link_first" "The address has an account. Sign in to it and link the provider there."
        IDENTITY_TAKEN "identity_taken" "This identity is linked to another account."
        PROVIDER_FLOW "provider_flow" "The visit to the identity provider was begun elsewhere or took too long. Begin anew."
        PROVIDER_REFUSED "provider_refused" "The identity provider did not let you in."
        PROVIDER_ANSWER "provider_answer" "The identity provider's answer cannot be believed; the operator's log says why."
        PROVIDER_UNREACHABLE "provider_unreachable" "The identity provider does not answer as it should."
    }
    "Servers and upstreams" {
        NAME_TAKEN "name_taken" "Something else of this kind has the name."
        MASKED "masked" "`********` stands for a value that is stored, and there is none under this name."
        BAD_HEADER "bad_header" "This header cannot be sent to an upstream server."
        CREDENTIALS_WOULD_MOVE "credentials_would_move" "Stored credentials do not follow a server to another origin. Give them anew or remove them."
        SEALED "sealed" "A credential cannot be encrypted."
        NOT_PUBLIC "not_public" "The server cannot be published; `detail` says what of it is private."
        URL_EMPTY "url_empty" "Give the server's address."
        URL_TOO_LONG "url_too_long" "The address is too long."
        URL_UNREADABLE "url_unreadable" "The address cannot be read as a URL."
        URL_SCHEME "url_scheme" "The address begins with neither `https://` nor `http://`, or is not the one that is needed here."
        URL_USERINFO "url_userinfo" "The address holds a user name or password. Send credentials as a header."
        URL_ODD_HOST "url_odd_host" "The host's name cannot be used."
        URL_PORT "url_port" "The port is not one for web servers."
        URL_UNKNOWN_HOST "url_unknown_host" "The host's name cannot be found. Check its spelling."
        URL_PRIVATE "url_private" "The host is inside; this Sluice connects to public addresses only, unless the operator sets `--allow-private-upstreams`."
        URL_OTHER_ORIGIN "url_other_origin" "The address leads to another server than the one it was given by."
        SERVER_UNUSABLE "server_unusable" "The server's settings or credentials cannot be read; the operator's log says why."
        UPSTREAM_REFUSED "upstream_refused" "Sluice may not connect to the server's address."
        UPSTREAM_DNS "upstream_dns" "The server's host name cannot be found."
        UPSTREAM_TLS "upstream_tls" "The server's certificate or TLS cannot be trusted."
        UPSTREAM_SLOW "upstream_slow" "The server did not answer in time."
        UPSTREAM_DOWN "upstream_down" "No connection to the server could be made, or it broke."
        UPSTREAM_CUT "upstream_cut" "The server's answer broke off."
        UPSTREAM_UNSENDABLE "upstream_unsendable" "The request cannot be sent to the server as it is."
        UPSTREAM_NOT_MCP "upstream_not_mcp" "What answers at the address does not speak MCP."
        UPSTREAM_REDIRECTS "upstream_redirects" "The server redirects, and redirects are not followed. Use the address it leads to."
        UPSTREAM_UNAUTHORIZED "upstream_unauthorized" "The server asks for credentials, or for other ones."
        UPSTREAM_FORBIDDEN "upstream_forbidden" "The server does not let these credentials in."
        UPSTREAM_NOT_FOUND "upstream_not_found" "The server has nothing at this path. MCP is often at `/mcp`."
        UPSTREAM_WRONG_TRANSPORT "upstream_wrong_transport" "The server speaks the other transport. Set `transport` to `auto`."
        UPSTREAM_FAULT "upstream_fault" "The server answered with a fault of its own (5xx)."
        UPSTREAM_BUSY "upstream_busy" "The server says that it gets too many requests."
        UPSTREAM_STATUS "upstream_status" "The server answered with a status that MCP does not know."
        UPSTREAM_WEB_PAGE "upstream_web_page" "A web page answers at the address, not MCP."
        UPSTREAM_ERROR "upstream_error" "The server answered with a JSON-RPC error."
        UPSTREAM_TOO_LARGE "upstream_too_large" "The server's list of tools is too large, or has no end."
        UPSTREAM_INVALID_TOOLS "upstream_invalid_tools" "An entry of the server's list is not a tool."
    }
    "Policies" {
        UNKNOWN_POLICY "unknown_policy" "The server has no such policy."
        UNKNOWN_VERSION "unknown_version" "The policy has no such version."
        IN_USE "in_use" "Live grants have this policy. Give them another one first."
        BUTTON_TAKEN "button_taken" "Another policy of the server is the button's, or has its name. Name the policy that is meant."
        RULE_CONFLICTS "rule_conflicts" "The recommended rule cannot be put into this document; `errors` says what stands in its way."
        NOT_THE_LAST_PRESS "not_the_last_press" "The newest version is not the one that the button made, so there is nothing to undo."
        BAD_ARGUMENTS "bad_arguments" "The arguments of a trial are no JSON object, or cannot be read in one way only."
        SYNTAX "syntax" "The document is no JSON, or the file no YAML; `line` and `column` say where."
        TOO_DEEP "too_deep" "The document is nested deeper than it may be."
        TOO_FEW "too_few" "The list has fewer entries than it needs."
        UNKNOWN_KEY "unknown_key" "The policy language has no such key here."
        MISSING_KEY "missing_key" "A key that is needed is missing."
        DUPLICATE_KEY "duplicate_key" "The key stands twice, so that it could be read in two ways."
        MISPLACED_KEY "misplaced_key" "The key belongs to another place of the document."
        WRONG_TYPE "wrong_type" "The value is of another type than the key takes."
        UNKNOWN_WORD "unknown_word" "The word is none of those that the key takes."
        BAD_NAME "bad_name" "This is no name of a tool."
        AMBIGUOUS_PATTERN "ambiguous_pattern" "Two patterns of tool names fit the same names equally well."
        BAD_PATH "bad_path" "This is no path to an argument, or, in a file, no path below the main file."
        REGEX_TOO_LARGE "regex_too_large" "The regular expression is too large."
        CONDITION_CONFLICT "condition_conflict" "A condition says two things at once, or none."
        ACTION_CONFLICT "action_conflict" "A rule allows and refuses at once."
        BAD_COUNTER "bad_counter" "A counter's name has letters, digits, `_` and `-`."
        COUNTER_WINDOWS "counter_windows" "One counter is given different windows in one scope."
        BAD_WINDOW "bad_window" "This is no window; one looks like `minute` or `15m`."
        BAD_RATE "bad_rate" "This is no rate; one looks like `10/minute`."
        BAD_APPROVER "bad_approver" "An approver is a role or a member's e-mail address."
    }
    "Grants, limits and approvals" {
        TOO_MANY_STREAMS "too_many_streams" "Too many logs are followed live at once. Close one of those pages."
        TOO_MANY_FILTERS "too_many_filters" "There are as many saved filters as there may be. Delete one first."
        LABEL_TAKEN "label_taken" "Another grant of the server has this label."
        BAD_NETWORK "bad_network" "A network is an address or CIDR block, as in `10.0.0.0/8`."
        REVOKED "revoked" "The grant is revoked; it has no other token."
        ALREADY_DECIDED "already_decided" "Somebody decided the approval before you, or it is over."
        ALREADY_YOURS "already_yours" "You have approved it already; another person is needed."
        NOT_AN_APPROVER "not_an_approver" "The policy names other people to decide this."
        OWN_GRANT "own_grant" "You made the grant, so somebody else must decide."
        NOT_WITH_DENY "not_with_deny" "Only an approval can be for a while."
        EXCEPTION_OVER "exception_over" "The exception is over already."
    }
    "Notifications" {
        NOT_AN_EVENT "not_an_event" "Nothing of that name is told of."
        NO_SECRET "no_secret" "Only webhooks have a secret."
        ENDPOINT_OFF "endpoint_off" "The endpoint is switched off. Switch it on first."
        STILL_WAITING "still_waiting" "The message is on its way already."
    }
    "Files" {
        DRIFT "drift" "Something was changed by hand since it was applied. Put it into the files, or say `overwrite_drift`."
        TOKENS_WANTED "tokens_wanted" "The plan makes grants. Say where their tokens go: `take_tokens`, or `--tokens-file`."
        TOKEN_NOT_KEPT "token_not_kept" "The new grant's token could not be written, so the grant was not kept."
        MISSING_FILE "missing_file" "A file that is named was not sent."
        DUPLICATE "duplicate" "The name stands twice."
        BAD_REFERENCE "bad_reference" "A reference looks like `${env:NAME}` or `${file:PATH}`."
        UNSET_REFERENCE "unset_reference" "The reference has no value, and nothing is stored that it could keep."
        SECRET_IN_FILE "secret_in_file" "The value is a secret in plain text. Put a reference in its place."
        DOCUMENT_TEXT "document_text" "A policy's document is JSON text in a block (`document: \\|`)."
        TWO_DOCUMENTS "two_documents" "A policy has a `file` or a `document`, not both."
        SECOND_BUTTON "second_button" "A server has one policy of the kind `button`."
        NOT_ONLY_OURS "not_only_ours" "A server that is no longer in the files has things that no file named. Delete them first."
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The sources of a crate beside this one, without this list.
    fn source(of: &str) -> String {
        fn read(folder: &Path, out: &mut String) {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    read(&path, out);
                } else if !path.ends_with("control/src/codes.rs") {
                    out.push_str(&std::fs::read_to_string(&path).expect("text"));
                }
            }
        }
        let mut out = String::new();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        read(&here.with_file_name(of).join("src"), &mut out);
        out
    }

    fn all() -> impl Iterator<Item = (ProblemCode, &'static str)> {
        GROUPS.iter().flat_map(|(_, codes)| codes.iter().copied())
    }

    /// The texts in a source that directly follow one of these words.
    fn after<'a>(source: &'a str, words: &[&str]) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        for word in words {
            for rest in source.split(word).skip(1) {
                let rest = rest.trim_start();
                if let Some((text, _)) =
                    rest.strip_prefix('"').and_then(|rest| rest.split_once('"'))
                {
                    found.insert(text);
                }
            }
        }
        found
    }

    #[test]
    fn what_the_crates_below_can_say_is_in_the_list() {
        let listed: BTreeSet<&str> = all().map(|(code, _)| code.as_str()).collect();
        let policy = source("policy");
        let errors = after(&policy, &[".error(", "ProblemSeverity::Error,", "code: ", "fail("]);
        assert!(errors.len() > 20, "{errors:?}");
        let upstream = source("upstream");
        let failures: BTreeSet<&str> = upstream
            .split('"')
            .filter(|text| text.starts_with("upstream_") || text.starts_with("url_"))
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
            .collect();
        assert!(failures.len() > 25, "{failures:?}");
        let missing: Vec<_> =
            errors.union(&failures).filter(|code| !listed.contains(*code)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_listed_code_can_be_answered_and_says_what_it_means() {
        let own: String = ["control", "web", "api", "dashboard"].map(source).concat();
        let below: String = ["policy", "upstream"].map(source).concat();
        let mut seen = BTreeSet::new();
        for (code, words) in all() {
            assert!(seen.insert(code), "{code} is there twice");
            assert!(words.len() > 15 && words.ends_with('.'), "{code}: {words}");
            let name = format!("codes::{}", code.as_str().to_uppercase());
            let used = own.match_indices(&name).any(|(at, _)| {
                !own[at + name.len()..].starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric())
            });
            assert!(used || below.contains(&format!("\"{code}\"")), "nothing answers {code}");
        }
    }
}
