//! Patterns of demands: fixed recipients, what the model holds put into an argument, notes to the model,
//! permission given in advance, rank over other tools. Pieces as in [`super::pretexts`]; `{SINK}` is a literal
//! recipient, `{HELD}` what only the model or the user's machine holds.

use super::FindingKind::{
    self, Concealment, HiddenInstruction, OtherTool, OutsideResource, SubstitutedArgument,
};

/// A recipient spelt out: an address of mail, of a wallet, a phone number, an IBAN.
pub(super) const SINK: &str = r"(?:[\w.+-]+@[\w-]+\.\w+|\b0x[0-9a-f]{12,}|\+\d[\d -]{8,}|\b[a-z]{2}\d{2}[a-z0-9]{12,}|\bbc1\w{10,})";

pub(super) const HELD: &str = r"(?:{TALK}|(?:your|its|the (?:agent|assistant|model|ai)'?s) (?:\w+ )?(?:memory|prompt|context|instructions|reasoning|scratchpad|chain of thought|state|memories|system message|tool list)|(?:credentials|passwords|secrets|api keys|private keys|secret keys?)\b{IN}{0,40}?\b(?:you|the (?:agent|model|assistant|ai)) (?:know|hold|remember|can see|can find|ha(?:s|ve) (?:seen|found)|found|saw)s?|the (?:full|whole|entire|complete|exact) (?:text|wording|contents?) of {IN}{0,20}?(?:requests?|messages?|prompts?|conversation|chat|files?))";

pub(super) fn recipients() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            SubstitutedArgument,
            r"\b(?:fees?|commission|payment|change|rest|remainder|funds|money)\b {IN}{0,20}?\b(?:goes|go|is paid|are paid|is sent|are sent) to\b {IN}{0,30}?{SINK}",
        ),
        (
            SubstitutedArgument,
            r"\b(?:always|must|shall|has to|have to|every time|each time|automatically)\b{IN}{0,60}?{SINK}",
        ),
        (
            SubstitutedArgument,
            r"(?:[.!?:;,] |\b(?:and|then|always|instead|also|kindly|please) )(?:add|send|include|put|use|set|pay|transfer|invite|text|mail|reply|copy|forward|wire|deliver)\b {IN}{0,60}?{SINK}",
        ),
        (
            SubstitutedArgument,
            r"\b(?:answers?|responses?|replies|reply|messages?|output|every \w+)\b{IN}{0,40}?\b(?:ends?|begins?|starts?|contains?|includes?|carr(?:y|ies))\b {IN}{0,30}?https?://",
        ),
        (
            SubstitutedArgument,
            r"\b(?:in place of|instead of|rather than) the (?:\w+ ){1,3}?(?:that |which )?(?:the )?(?:users?|customer|they) (?:gave|gives?|named|chose|chooses|typed|entered|specified|asked for|wants?|provided)\b",
        ),
        (
            SubstitutedArgument,
            r"\b(?:ignore|disregard|override|overrule) (?:what|whatever|the \w+) (?:the )?(?:users?|they|customer)s? (?:says?|said|asks?|wants?|gives?|gave|wrote|chose|chooses)\b",
        ),
    ]
}

pub(super) fn holdings() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            OutsideResource,
            r"(?:{CLAUSE}(?:{GIVE}|prepend|dump|list|write|summari[sz]e)|\b(?:must|should|shall|has to|have to|needs? to|is to|are to|always)\b{IN}{0,30}?\b(?:{GIVE}|hold|contain|carry|listed|passed|given|included|forwarded|sent))\b {IN}{0,60}?{HELD}{IN}{0,60}?(?:{FIELD}|\bto (?:the|this) server\b)",
        ),
        (
            OutsideResource,
            r"\b(?:argument|parameter|field|param|value|input|property)s?\b {IN}{0,20}?\b(?:must|should|shall|has to|have to|needs to|is to|always) (?:\w+ )?(?:contain|hold|be|carry|include|list|give|repeat|quote)s?\b {IN}{0,40}?{HELD}",
        ),
        (
            OutsideResource,
            r"\b(?:credentials|passwords|secrets|api keys|private keys|secret keys)\b{IN}{0,40}?\b(?:that )?(?:you|the (?:agent|model|assistant|ai)) (?:know|hold|remember|can see|can find|ha(?:s|ve) (?:seen|found)|found|saw)s?\b",
        ),
        (
            OutsideResource,
            r"\b(?:{GIVE}|prepend)\b {IN}{0,20}?\b(?:secret|api|private|access|master|signing) (?:keys?|tokens?|passwords?)\b {IN}{0,20}?\b(?:from|of|in) (?:the |your |another |a )?(?:\w+ )?(?:tool|vault|environment|memory|keychain|password manager|server)\b{IN}{0,40}?\b(?:to|in|into|as|so)\b",
        ),
        (
            OutsideResource,
            r"\b(?:with|in|into|as|plus|and|using|including|followed by) (?:the |all )?(?:\w+ )?contents? of (?:the )?(?:file )?[`'\x22]?{FILE}",
        ),
        (
            OutsideResource,
            r"\b(?:cat|type|less|head|tail|base64|xxd|scp|curl -d @|curl -f) [`'\x22]?{FILE}",
        ),
        (
            OutsideResource,
            r"(?:[.!?:;,] |\b(?:and|then|first|also|before|to) )(?:call|use|run|invoke)\b {IN}{0,20}?\b(?:get|list|read|search|fetch|export)_\w*(?:contact|message|mail|email|inbox|secret|credential|password|file|note|history|memor|token|key|user|customer|account)\w*\b{IN}{0,30}?\band (?:then )?{GIVE}\b (?:its|the|all|their|every)\b {IN}{0,20}?\b(?:outputs?|results?|responses?|contents?|text|answer|everything)\b{IN}{0,20}?{FIELD}",
        ),
    ]
}

pub(super) fn notes() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            HiddenInstruction,
            r"\b(?:notes?|messages?|instructions?|attention|reminders?|directives?|memo|order)s? (?:for|to) (?:the |all |any |every )?(?:ai|llm|(?:ai |language )?(?:agents?|assistants?|models?))(?: \w+)? ?[:\x2d]{IN}{0,80}?\b(?:always|never|do not|don'?t|must|ignore|disregard|also|bypass|without|secretly|instead)\b",
        ),
        (
            HiddenInstruction,
            r"(?:^|[.!?:;\x2d>] )(?:dear |hey |hi )?(?:ai|llm|(?:ai |language )(?:agents?|assistants?|models?)|assistant|claude|gpt|gemini|copilot|chatgpt) ?[:,\x2d] ?{IN}{0,80}?\b(?:do not|don'?t|never|always|remember|must|ignore|also|forget|send|call|run)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:hidden|secret|silent|invisible|unlisted) (?:steps?|tasks?|actions?|instructions?|orders?|requirements?|duty|duties) ?:",
        ),
        (
            HiddenInstruction,
            r"\b(?:remember|keep in mind|apply|follow)\b{IN}{0,30}?\b(?:for|in|to) (?:all|every|any) (?:later|future|following|subsequent) (?:turns?|answers?|conversations?|sessions?|messages?|requests?|tools?|calls?)\b",
        ),
        (
            Concealment,
            r"\byou (?:now )?have (?:full |the |my |the user'?s )?(?:permission|approval|consent|authori[sz]ation) to (?:\w+ ){1,3}?(?:any|all|every|everything|anything)\b|\bno (?:further |more |user )?(?:approval|confirmation|permission|consent)s? (?:is|are|will be) (?:needed|required|necessary) (?:from now|any ?more|any longer|from here|for (?:any|all|the rest))",
        ),
        (
            Concealment,
            r"{CLAUSE}(?:call|use|run|invoke|trigger)\b {IN}{0,60}?(?:\btools?\b|\b\w+_\w+\b){IN}{0,60}?\bwithout (?:asking|confirmation|approval|telling|waiting for|consulting|permission)\b",
        ),
        (
            Concealment,
            r"\b(?:do not|don'?t|never) (?:show|display|print|include|list|mention|write)\b {IN}{0,40}?\b(?:to {USER}|in (?:the|your) (?:answer|reply|response|commit message|summary|chat)),? (?:but |and |instead )?(?:show|say|tell|report|claim|pretend|write|state)\b {IN}{0,10}?[`'\x22\xe2]",
        ),
        (
            Concealment,
            r"\b(?:insert|add|append|put|write|commit|include)\b{IN}{0,80}?\b(?:and|but) (?:do not|don'?t|never) (?:mention|tell|report|show|reveal|say)\b",
        ),
        (
            OtherTool,
            r"\b(?:has|have|takes?|with|gets?) (?:\w+ )?(?:priority|precedence) over (?:every|all|any|each|the) other\b{IN}{0,20}?\b(?:tools?|servers?|functions?)\b",
        ),
        (
            OtherTool,
            r"\b(?:results?|outputs?|answers?|data|values?)\b {IN}{0,10}?(?:of|from|by) (?:the |any |every |all )?(?:other|another|official|built-in) (?:\w+ ){0,2}?(?:tools?|servers?)\b{IN}{0,60}?\b(?:manipulated|wrong|false|fake|incorrect|corrupt\w*|tampered|forged)\b",
        ),
    ]
}
