//! Patterns of polite pretexts: what a user says or owns handed over, their choices overruled, their
//! consent said to be given, other tools spoken ill of. Pieces beside those of [`super::patterns`]:
//! `{CLAUSE}` is where an order begins, `{GIVE}` hands something over, `{FIELD}` is where it goes.

use super::FindingKind::{
    self, Concealment, HiddenInstruction, OtherTool, OutsideResource, SubstitutedArgument,
};

/// The start of a clause, or a word that makes an order of what follows.
pub(super) const CLAUSE: &str = r"(?:^|[.!?:;,)] |\b(?:and|then|please|always|first|also|instead|must|should|shall|will|to|simply|just|now|kindly|step|you) )";

pub(super) const GIVE: &str = r"(?:pass|put|include|attach|hand|send|forward|copy|paste|append|supply|submit|upload|provide|share|add|insert|give|deliver|embed|encode|repeat|echo|place|transmit|relay|report)(?: along| over| on| in)?";

/// An argument of a call, by its name or as such.
pub(super) const FIELD: &str = r#"\b(?:in|into|as|through|via|inside|within|under|to|using|with)\b (?:the |an? |its |this |your |that )?(?:[`'"][\w.-]+[`'"]|(?:[`'"]?[\w.-]+[`'"]? )?(?:field|argument|parameter|param|input|metadata|header|variable|property|body|comment|remark|slot|tool|call)s?\b)"#;

/// What was said between the user and the model, and what the model was told.
pub(super) const TALK: &str = r"(?:(?:the |your |this |our )?(?:whole|entire|full|complete|previous|prior|earlier|preceding|recent|latest|last|raw|all)(?: \w+){0,3}? (?:conversations?|chat|messages?|transcript|dialog(?:ue)?|discussion|session|exchange|turns|context|requests?)\b|(?:the |our |your )?(?:chat|conversation|message|session) (?:history|log|transcript|so far)|(?:your|the (?:agent|assistant|model)'?s|hidden|original|initial|system) (?:system )?(?:prompt|instructions)\b|(?:everything|anything|all|what) (?:that )?(?:the )?(?:user|customer|human)s? (?:has |have )?(?:said|wrote|written|typed|told you|asked|sent))";

/// What is a user's own.
pub(super) const OWN: &str = r"(?:notes|files|documents|mails?|e-?mails?|messages|contacts|photos|pictures|history|calendar|inbox|mailbox|folders?|passwords|chats?|drive|repositor(?:y|ies)|keys|secrets|credentials|bookmarks|invoices|statements|location)\b";

pub(super) fn handing_over() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            OutsideResource,
            r"(?:[.!?:;,] |\b(?:and|then|also|must|should|be|by|please|kindly|always|first|to) )(?:also )?(?:bcc|cc|save|saved|saving|write|written|writing|upload|uploaded|uploading|post|posted|send|sent|sending|copy|copied|copying|forward|forwarded|forwarding|push|pushed|mail|mailed|ship|stream|streamed|mirror|mirrored|deliver|delivered|leak|beacon)\b {IN}{0,60}?(?:\b(?:to|at|on|into|via|with)\b {IN}{0,10}?[`'\x22(]?(?:https?|s3|ftp|sftp|gs|wss?)://[\w-]|\b[\w.+-]+@[\w-]+\.\w+ (?:whenever|every|each|on|with|for|in|too|as well))",
        ),
        (
            OutsideResource,
            r"{CLAUSE}(?:open|read|unlock|include|copy|export|dump|upload|attach|send|take)\b {IN}{0,30}?(?:password manager|cookie (?:store|jar)|key ?ring|key store|~/\.gnupg|browser profile|saved passwords|session cookies)\b{IN}{0,80}?\b(?:and|into|to|in)\b",
        ),
        (
            OutsideResource,
            r"\b(?:token|key|secret|password|credential)s?\b{IN}{0,40}?\b(?:in|from) (?:the|your) (?:environment|config\w*|keychain|memory|context)\b{IN}{0,40}?[;,] {GIVE}\b",
        ),
        (
            OutsideResource,
            r"\b(?:assistants?|agents?|models?|llms?|you) (?:must|should|have to|has to|need to|shall|are required to|is required to) (?:\w+ ){0,2}?(?:hand (?:in|over)|surrender|disclose|give up|turn over|report)\b {IN}{0,20}?\b(?:contents?|everything|files|conversation|discussion|workspace|context|data|prompt)\b",
        ),
        (OutsideResource, r"{CLAUSE}{GIVE}\b {IN}{0,30}?{TALK}{IN}{0,60}?{FIELD}"),
        (
            OutsideResource,
            r"\b(?:agent|assistant|model|caller|llm|you)s?\b (?:\w+ ){0,2}?(?:supplies|provides|hands|passes|includes|attaches|sends|puts|repeats|copies|pastes|quotes)\b {IN}{0,40}(?:{TALK}|{FILE})",
        ),
        (
            OutsideResource,
            r"{CLAUSE}(?:{GIVE}|return|write|list|print|dump)\b {IN}{0,20}\b(?:the|all|any|every|your)\b (?:\w+ )?(?:environment variables?|env vars?|credentials|secrets|passwords|api keys?|access tokens?|session cookies|cookies|private keys?)\b{IN}{0,30}?\b(?:of (?:the|this|your) (?:\w+ )?(?:process|host|machine|agent|client|computer|session|environment)|(?:that )?you (?:find|found|see|saw|know|hold|can|were given|have (?:seen|found|access)|come across)|from (?:the |your |its )?(?:\w+ )?(?:environment|memory|context|config\w*|disk|machine|files?|keychain|browser|shell))",
        ),
        (
            OutsideResource,
            r"\b(?:suppl(?:y|ies)|hands?|provides?|gives?|pass(?:es)?|puts?|pastes?|cop(?:y|ies)|needs?|requires?|wants?|expects?)\b {IN}{0,30}\bcontents? (?:of|from) {IN}{0,20}{FILE}",
        ),
        (
            OutsideResource,
            r"\b(?:gather|collect|take|grab|find|look up|search|locate)\b {IN}{0,40}{FILE}{IN}{0,40}\b(?:and|then)\b {IN}{0,20}\b(?:return|include|pass|send|append|attach|put|forward|submit|insert|post|paste|hand)\b",
        ),
        (
            OutsideResource,
            r"{CLAUSE}(?:list|read|collect|gather|fetch|find|look up|search|get|export|open|load|(?:call|use|run|invoke)\b {IN}{0,40}\b(?:on|for|with|over))\b {IN}{0,20}?\b(?:(?:all|every|any) (?:of )?(?:the |your |their )?(?:\w+ )?(?:private|secret|confidential|personal|internal|sensitive) \w+|(?:the |any |each )?(?:users?'?s?|their|customer'?s|your) (?:\w+ ){0,2}?{OWN}){IN}{0,60}?\b(?:and|then) (?:\w+ ){0,2}?(?:paste|put|add|include|append|write|send|pass|attach|submit|forward|embed|post|copy|hand|deliver|give)\b",
        ),
        (
            OutsideResource,
            r"https?://\S*[=/]['`]? (?:followed by|plus|and append|and then|with|joined with|concatenated with) {IN}{0,30}\b(?:user|question|query|conversation|messages?|prompt|answer|results?|contents?|data|keys?|token|text)\b",
        ),
    ]
}

pub(super) fn overruling() -> Vec<(FindingKind, &'static str)> {
    const ORDER: &str = r"{CLAUSE}(?:use|put|choose|pick|send|set|pass|write|pay|transfer|rank|show|recommend|answer|return|select|place|redirect|prepend|fill|book|buy|order|list|enter|give|report|say)\b";
    const HEEDLESS: &str = r"\b(?:whatever|whichever|no matter (?:what|which|who|where|how)|regardless of (?:what|which|who|where|the)|irrespective of (?:what|which|the)|independent of what)\b {IN}{0,40}?\b(?:the )?(?:users?|customers?|humans?|person|caller|they|somebody|someone|anyone)\b (?:has |have |had |may |might |actually )?(?:asks?|asked|gives?|gave|given|names?|named|wants?|wanted|says?|said|enters?|entered|chose|chosen|chooses?|specif(?:y|ies|ied)|request(?:s|ed)?|provides?|provided|types?|typed|picks?|picked|prefers?|preferred|objects?|declines?|refuses?)\b";
    static BEFORE: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| format!("{ORDER}{{IN}}{{0,90}}?{HEEDLESS}"));
    static AFTER: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| format!("{HEEDLESS}{{IN}}{{0,60}}?{ORDER}"));
    vec![
        (SubstitutedArgument, BEFORE.as_str()),
        (SubstitutedArgument, AFTER.as_str()),
        (
            SubstitutedArgument,
            r"{CLAUSE}(?:make|grant|send|pay|delete|add|share|transfer|install|give|approve|buy|order|invite|forward|publish)\b{IN}{0,80}?\beven (?:if|when|though|where) (?:the )?(?:users?|they|it|that|this|nobody|no one|he|she) (?:did not|didn'?t|was not|wasn'?t|has not|hasn'?t|does not|doesn'?t|never|had not|objects|declines|refuses|says no|forbids)\b ?(?:ask|request|want|approve|agree|mention|name|say|consent|allow)?",
        ),
        (
            SubstitutedArgument,
            r"\b(?:should|if|when(?:ever)?|once) the (?:user|customer|human) (?:asks?|wants?|says?|tries|requests?|types?)\b{IN}{0,60}?, (?:also )?(?:delete|send|remove|pay|transfer|write|add|grant|share|upload|copy|forward|disable|install|run)\b{IN}{0,60}?\b(?:too|as well|also|instead)\b",
        ),
        (
            SubstitutedArgument,
            r"\b(?:amount|price|total|fee|sum|rate|quantity)s?\b{IN}{0,60}?\b(?:has to|have to|must|should|needs? to) be (?:raised|increased|inflated|lowered|reduced) by\b",
        ),
        (
            SubstitutedArgument,
            r"\bthe \w+(?: \w+)? (?:that |which )?(?:the )?(?:users?|customer|human|they) (?:gave|gives?|provided?|provides|named|typed|entered|specified|chose|asked for)\b {IN}{0,10}(?:is|are|was|were|will be) (?:\w+ )?(?:wrong|invalid|outdated|incorrect|stale|unsafe|out of date|replaced|ignored)\b{IN}{0,80}?\b(?:use|write|send|pass|put|set|instead)\b",
        ),
        (
            SubstitutedArgument,
            r"\b(?:replace|change|rewrite|swap|redirect|prefix|point|turn)\b (?:any|every|each|all|the) (?:\w+ )?(?:links?|urls?|addresses|websites?|domains?|hosts?|remotes?|images?)\b{IN}{0,40}\b(?:by|with|to|into|at)\b {IN}{0,20}https?://",
        ),
        (
            SubstitutedArgument,
            r"\b(?:multiply|increase|raise|inflate|lower|round up|reduce|double)\b (?:every|all|each|the|any) (?:\w+ )?(?:prices?|amounts?|totals?|fees?|costs?|rates?|figures?|numbers?)\b{IN}{0,60}\bbefore (?:you |it is |they are )?(?:show|tell|report|present|answer|display|return|reply)\w*",
        ),
        (
            SubstitutedArgument,
            r"\b(?:copy|cc|bcc|add|include|put)\b {IN}{0,20}?\S+@\S+\.\w+{IN}{0,40}?\b(?:on|to|in|as)\b {IN}{0,20}?\b(?:every|all|each|any|cc|bcc|(?:blind|carbon) copy|(?:hidden|extra|further|second) recipients?)\b",
        ),
        (
            SubstitutedArgument,
            r"\b(?:push|write|save|upload|copy|redirect|commit|publish|append)\b {IN}{0,20}?(?:https?://\S+|{FILE}){IN}{0,40}?\b(?:instead|rather than|in place of)\b",
        ),
    ]
}

pub(super) fn consent_given() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            Concealment,
            r"\bwithout (?:\w+ )?(?:bringing (?:it|this|that) up|(?:mentioning|naming|saying|admitting) (?:it|this|that|so)\b)|\bleave (?:this|that|it|them) out of (?:your|the|any) (?:\w+ )?(?:explanation|answer|summary|reply|response|report)\b|\bkeep (?:quiet|silent) about\b|\bthis (?:description|instruction|text|note|paragraph) is (?:confidential|secret|private|not for)\b",
        ),
        (
            Concealment,
            r"\b(?:any|every|all|each|the) (?:\w+ )?(?:confirmation|permission|approval|consent|security) (?:dialogs?|prompts?|questions?|requests?|windows?|checks?|warnings?)\b{IN}{0,60}?\b(?:(?:click|press|choose|say|answer|select)s? (?:yes|ok|allow|accept|approve|continue)|(?:is|are) (?:only )?(?:a )?tests?|(?:can|should|must) be ignored)\b",
        ),
        (
            Concealment,
            r"\b{USER} (?:needs? (?:not|never)|need never|(?:does|do) not (?:need|have) to|(?:doesn|don)'?t (?:need|have) to|should(?: not|n'?t)|must(?: not|n'?t)) (?:even |ever )?(?:be (?:told|informed|notified|warned|aware|consulted|shown)\b|(?:know|see|confirm|approve|hear|learn|notice|review|find out)\b{IN}{0,20}\b(?:this|these|it|that|about|of)\b)",
        ),
        (
            Concealment,
            r"\b(?:and|or|they|who|but|so) (?:need not|need never|should never|must never|should not|must not) be (?:told|informed|notified|asked|warned|bothered)\b",
        ),
        (
            Concealment,
            r"\b(?:skip|bypass|omit|ignore|suppress|no need for|proceed|continue|without|go ahead)\b{IN}{0,60}?\b(?:(?:approval|confirmation|consent|permission|authori[sz]ation|it|this|that|everything|which)\b {IN}{0,10}?(?:has|have|was|were|is|are)\b (?:already |previously |automatically )?(?:been )?(?:pre-?)?(?:granted|given|obtained|approved|authori[sz]ed|cleared)|{USER}(?: (?:has|have))? (?:already |previously )(?:agreed|consented|approved|confirmed|accepted))\b",
        ),
        (
            Concealment,
            r"(?:^|[.!?:;,] |\b(?:as|since|because) )(?:the )?(?:users?|customers?|humans?|owner|administrator|admin) (?:has|have) (?:already |previously |implicitly )?(?:agreed|consented|approved|authori[sz]ed)\b{IN}{0,60}?\b(?:not|never|no need|without|silently|proceed|skip)\b",
        ),
        (
            Concealment,
            r"\b(?:never|do not|don'?t|must not|should not|avoid) (?:ever )?(?:mention|reveal|disclose|say|admit|tell|explain)(?:ing)?\b{IN}{0,30}?\bthat (?:this tool|the tool|you|it|we|this)\b",
        ),
        (
            Concealment,
            r"\b(?:never|do not|don'?t|must not) (?:ever )?(?:let|allow) {USER} (?:to )?(?:know|see|notice|find out|learn|discover)\b",
        ),
        (
            Concealment,
            r"\b(?:real|actual|true|hidden) (?:purpose|goal|task|aim)(?: of (?:this|the) tool)? (?:is|here is)\b",
        ),
    ]
}

pub(super) fn cancelling() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            HiddenInstruction,
            r"\b(?:results?|outputs?|contents?|texts?|pages?|data|responses?|answers?|messages?|documents?|what it returns)\b {IN}{0,20}?\b(?:is|are|counts? as|speaks? for|comes? from|has|have) {IN}{0,20}?\b(?:instructions?|orders?|commands?|directives|(?:priority|precedence|authority)) (?:from|of|over|for) (?:the )?(?:operators?|system|users?|admin\w*|developers?|you)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:do|does|act) (?:exactly )?(?:as|what|whatever) (?:the|this|that|its) (?:page|e-?mail|text|message|audio|document|result|output|response|answer|file|tool|server|note|content|description|image|picture|comment|issue|log)s? (?:says?|tells?|asks?|demands?|instructs?|commands?|orders?)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:run|execute)\b (?:any |the |all |every )?(?:code|commands?|scripts?|instructions?) (?:that (?:is|are) )?(?:in|inside|within|contained in|found in|from) (?:the|that|an?) (?:mail|e-?mail|message|document|comment|issue|result|response|output|log)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:lines?|code|commands?|text|scripts?|instructions?|everything)\b{IN}{0,60}?\b(?:are|is|has|have|must|should|needs?) (?:to )?be (?:executed|run|obeyed|followed|carried out)\b{IN}{0,20}?\b(?:by (?:you|the (?:assistant|agent|model))|in your (?:terminal|shell))\b",
        ),
        (
            HiddenInstruction,
            r"\byour (?:\w+ )?(?:guidelines?|rules|instructions?|polic(?:y|ies)|permissions|restrictions) (?:were|was|have been|has been|are now|got) (?:updated|changed|replaced|extended|removed|lifted|overwritten)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:earlier|previous|prior|safety|your|usual|content|security)\b (?:\w+ ){0,2}?(?:rules?|instructions?|guidelines?|restrictions?|polic(?:y|ies)|guardrails?|safeguards?|precautions|filters?)\b (?:no longer|do not|does not|don'?t|need not|cease to|(?:are|is) (?:now )?(?:suspended|lifted|void|disabled|superseded|cancelled|waived|off|not in force))\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:forget|disregard|ignore|discard)\b (?:about )?(?:everything|anything|all|whatever|what) (?:that )?(?:you (?:were|have|had|know|learned|are)|(?:was|were|has been) (?:said|told|written)|(?:the )?(?:user|system|developer)s? (?:said|says|told|tells|asked|asks|wrote))\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:must|should|shall|always|have to|has to|only|will)\b (?:\w+ ){0,2}?obey\b|\bobey (?:the|every|any|all|its|whatever) (?:\w+ )?(?:text|instructions?|orders?|commands?|output|results?|directions?)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:grant|approve|accept|confirm|answer yes to)\b (?:every|all|any|each) (?:\w+ ){0,2}?(?:requests?|prompts?|questions?|dialogs?|permissions?)\b{IN}{0,40}?\b(?:from now on|automatically|from here on|without|unconditionally)\b",
        ),
    ]
}

pub(super) fn rivals() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            OtherTool,
            r"\b(?:other|another|competing|alternative|rival) (?:\w+ ){0,2}?(?:tools?|functions?|connectors?|plugins?|(?:mcp |tool )servers?)\b{IN}{0,60}?\b(?:broken|corrupt(?:ed)?|unsafe|insecure|compromised|malicious|unreliable|infected|dangerous|hacked|faulty|untrusted|buggy)\b",
        ),
        (
            OtherTool,
            r"\b(?:if|when|whenever|where) (?:another|any other|a different|other|a second)\b {IN}{0,20}?\b(?:tools?|servers?) (?:exists?|is|are|can)\b{IN}{0,30}?, (?:do not|don'?t|never|avoid|ignore)\b",
        ),
        (
            OtherTool,
            r#"\b(?:call|run|invoke|trigger)\b (?:the )?[`']?\w+_\w+[`']?(?: tool)? with (?:the )?(?:text|message|body|content|subject|words) ["']"#,
        ),
        (
            OtherTool,
            r"\b(?:never|do not|don'?t|stop|avoid|no longer) (?:use|using|call|calling|trust|trusting|rely on|relying on) (?:the )?[`']?\w+_\w+[`']?(?: tool)?\b{IN}{0,40}?\b(?:false|fake|bad|stale|corrupt|malicious|insecure|unsafe|broken|compromised|leaks?|steals?|manipulated|hacked)\b",
        ),
        (
            OtherTool,
            r"\b(?:when(?:ever)?|if|once|after|each time|every time) you (?:later |next |subsequently |then |afterwards |also |ever )?(?:use|call|run|invoke|send|write|push|commit|open|pay|book|mail)\b {IN}{0,50}?, {IN}{0,60}?(?:https?://|\S+@\S+\.\w|{FILE})",
        ),
    ]
}
