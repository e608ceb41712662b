//! The patterns of orders, by kind. `{IN}`, `{FILE}` and `{USER}` stand for the pieces below.

use super::FindingKind::{
    self, Concealment, HiddenInstruction, Markup, OtherTool, OutsideResource, SubstitutedArgument,
};

/// Within a sentence: a full stop inside `~/.ssh` or `v1.2` does not end one.
pub(super) const IN: &str = r"(?:[^.!?\n]|[.!?][^\s])";

/// Files and stores that hold secrets.
pub(super) const SECRET_FILE: &str = r"(?:~/\.\w+|\.ssh\b|\bid_rsa|id_ed25519|\.env\b|/etc/(?:passwd|shadow|sudoers|hosts)|\.aws\b|aws[_/ ]credentials|\bmcp\.json|\.cursor\b|claude_desktop_config|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.kube/|kubeconfig|wallet\.dat|keychain|\.bash_history|\.docker/config|/proc/self|credentials\.json|secrets?\.(?:json|ya?ml|toml))";

pub(super) const USER: &str = r"(?:the |any |your |an? )?(?:end )?(?:users?|humans?|people|person|operators?|owners?|customers?|clients?|admins?|administrators?|anyone|anybody)\b";

pub(super) fn concealment() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            Concealment,
            r"\b(?:do not|don'?t|never|must not|should not|shouldn'?t|avoid|without|refrain from) (?:ever |explicitly |directly |openly )*(?:tell|inform|notify|alert|warn|telling|informing|notifying|alerting|warning) {USER}",
        ),
        (
            Concealment,
            r"\b(?:do not|don'?t|never|must not|should not|avoid|without) (?:ever |explicitly |directly |openly )*(?:mention|mentioning|reveal|revealing|disclose|disclosing|report|reporting)\b (?:this|that|these|it|the fact|you|anything|any of (?:this|these))\b{IN}{0,60}",
        ),
        (
            Concealment,
            r"\b(?:do not|don'?t|never|without) (?:explicitly )?(?:mention|reveal|disclose|show|say|acknowledge)(?:ing)? {IN}{0,40}(?:that you(?:'re| are| have|'ve)|to {USER}{IN}{0,20}(?:because|since|as it|, it))",
        ),
        (
            Concealment,
            r"\b(?:keep|hide|conceal) (?:this|it|that|these|the (?:call|step|action|fact|request))\b{IN}{0,30}\b(?:secret|hidden|confidential|from {USER})",
        ),
        (
            Concealment,
            r"\b(?:silently|secretly|covertly|discreetly|stealthily|surreptitiously|quietly|invisibly) (?:\w+ ){0,2}?(?:creat|send|forward|cop(?:y|ies)|upload|collect|read|append|stor|transmit|record|exfiltrat|export|harvest|captur|leak|bcc|call|invok|includ|attach|log|modif|replac)\w*",
        ),
        (
            Concealment,
            r"\b(?:discreetly|covertly|secretly|surreptitiously|stealthily)\s*(?:[.!,]|$)",
        ),
        (
            Concealment,
            r"\b(?:goes?|going|stays?|remains?) (?:un(?:noticed|detected)|hidden from)|\bwithout (?:leaving )?(?:any |a )?(?:trace|being (?:noticed|detected|seen))|\bwithout {USER}{IN}{0,20}(?:knowing|noticing|knowledge|awareness)|\bwithout (?:the )?users?'?s? (?:knowledge|awareness)",
        ),
        (
            Concealment,
            r"\bpresent (?:it|this|the (?:information|data|results?)) as (?:if|though) (?:it|they)(?:'s| is| are| were)? part of",
        ),
    ]
}

/// Going round a person's consent, said of what is to be done with results.
pub(super) fn consent() -> Vec<(FindingKind, &'static str)> {
    const ASK: &str = r"\b(?:do not|don'?t|never|no need to|must not) (?:ask|prompt|request|wait)\b(?: {USER})?(?: for)?(?: (?:the|any|an|explicit|user|user's|users'|further|additional))* (?:confirmation|permission|approval|consent)\b";
    const DENY: &str = r"\b(?:if|when(?:ever)?) (?:you are |the user |anyone |someone )?(?:asked|asks|questioned|questions)\b{IN}{0,60}, (?:you (?:must|should) |always |just |simply )?(?:say|answer|reply|claim|state|respond|pretend|deny|insist)\b";
    const MOVE: &str = r"\b(?:pass|send|sent|forward|forwarded|passed|route|upload|share|transmit|deliver|submit|export|execute|approve|proceed|transfer)\b{IN}{0,80}\bwithout (?:\w+ ){0,3}?(?:(?:user|human|explicit|manual)\w* (?:\w+ )?(?:confirmation|approval|consent|permission|review)|asking (?:for |the |any )|(?:ask|request|requir|seek|wait)ing (?:for )?(?:\w+ )?(?:user|human))";
    vec![(Concealment, MOVE), (Concealment, ASK), (Concealment, DENY)]
}

pub(super) fn instructions() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            HiddenInstruction,
            r"\bth(?:is|e following) (?:message|instruction|notice|text|directive|order)s? (?:is|are|comes?) (?:directly )?from (?:the |your )?(?:system|administrators?|anthropic|openai|google|developers?|security team|user)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:ignore|disregard|forget|override|bypass|discard)\b (?:all |any |the |your |of |every |those |these )*(?:previous|prior|earlier|above|preceding|existing|other|safety|security|system|user|original|former)(?: (?:and|or|safety|security|system|user|developer|previous))* ?(?:instructions?|polic(?:y|ies)|rules?|guidelines?|prompts?|checks?|restrictions?|directives?|constraints?|commands?|guardrails?|messages?)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:ignore|disregard|forget) (?:all |any |the |your )+(?:instructions?|guidelines?|guardrails?|policies|rules)\b",
        ),
        (
            HiddenInstruction,
            r"\boverrid(?:e|es|ing) (?:any |all |the |your |other )*(?:user|safety|system|developer)(?:'s)? (?:instructions?|preferences?|guidelines?|polic(?:y|ies)|prompts?|rules)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:treat(?:ed)?|consider(?:ed)?|follow(?:ed)?|regard(?:ed)?|obey(?:ed)?)\b {IN}{0,40}\bas (?:an? |the )?(?:\w+[- ]){0,3}(?:instructions?|directives?|commands?|orders)\b|\bauthoritative (?:system )?(?:directives?|instructions?)\b",
        ),
        (
            HiddenInstruction,
            r"\byou are now (?:in |an? |the |operating |acting |free |unrestricted)|\b(?:developer|god|debug|jailbreak|dan) mode (?:is )?(?:enabled|activated|on)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:system|admin|developer|security) (?:note|notice|override|directive|alert)s? ?:{IN}{0,80}\b(?:you|must|always|before|first)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:this|these) (?:instruction|order|directive|rule)s? (?:must|should|takes?|has|have|overrides?|supersedes?)\b{IN}{0,40}\b(?:priority|precedence|overrid|all other|any other|previous)",
        ),
        (
            HiddenInstruction,
            r"\b(?:elevate|escalate) (?:your|its|the agent'?s) privileges\b|\bno (?:content|safety) (?:moderation|checks|filtering) (?:is |are )?(?:needed|required|applied)",
        ),
    ]
}

pub(super) fn files() -> Vec<(FindingKind, &'static str)> {
    vec![
        (SubstitutedArgument, r"\b\w+_(?:from|after|by|of)_reading_\w+\b"),
        (
            OutsideResource,
            r"(?:\b(?:you |agents? |models? |assistants? )?(?:must|should|shall|need to|have to|please|first|always|also|in order to|before|prior to|remember to|make sure to)\b{IN}{0,80}?\b(?:read|access|open|cat|load|fetch|retrieve|extract|include|append|attach|pass|send|print|dump)\b{IN}{0,80}{FILE})",
        ),
        (
            OutsideResource,
            r"\b(?:read|access|open|cat|load|fetch|retrieve|extract|get)\b {IN}{0,40}{FILE}{IN}{0,40}\b(?:and|then)\b {IN}{0,20}\b(?:include|pass|send|append|attach|put|forward|submit|insert|post|return|use)\b",
        ),
        (
            OutsideResource,
            r"\b(?:include|pass|send|append|attach|put|forward|submit|insert|provide|add)\b {IN}{0,30}\bcontents? (?:of|from) {IN}{0,20}{FILE}",
        ),
        (
            OutsideResource,
            r"\b(?:must|should|first|always|before)\b{IN}{0,80}\b(?:read|access|accessing|retrieve|fetch|open)\b {IN}{0,80}[^h\s]\w{2,}://{IN}{0,60}\b(?:and|then) (?:include|return|pass|send|add)\b",
        ),
        (
            OutsideResource,
            r"\b(?:must|should|first|always)\b{IN}{0,60}\b(?:access|read|retrieve|extract|include|reveal)\b {IN}{0,80}\b(?:master password|system secrets?|api keys|all (?:credentials|secrets|passwords)|admin(?:istrator)? (?:password|credentials)|confidential)\b{IN}{0,80}",
        ),
        (
            OutsideResource,
            r"\b(?:collect|capture|harvest|steal|exfiltrate|gather|extract)\b(?: \w+){0,4}? (?:credentials|passwords|secrets|api keys|private keys|session tokens)\b{IN}{0,60}\b(?:of|from|without|and (?:send|forward|store|include))\b",
        ),
        (
            SubstitutedArgument,
            r"\b(?:read|load|open|fetch)\b {IN}{2,60}\b(?:and|then) (?:pass|include|send|put|provide|insert|append|add) (?:its|the|their) (?:\w+ )?contents?\b{IN}{0,40}\b(?:as|in|into|to)\b",
        ),
        (
            SubstitutedArgument,
            r"\b(?:must|should|always|instead|please|in order to)\b{IN}{0,60}\b(?:append|include|pass|put|insert|add) (?:the |its )?contents? of\b {IN}{0,60}\b(?:in|to|into|as|within) (?:the |an? )?{IN}{0,20}\b(?:var|variable|parameter|field|argument|param)\b",
        ),
        (
            SubstitutedArgument,
            r"\b(?:replace|change|substitute|overwrite|swap|alter)\b (?:the |any |every |all |each )?(?:\w+ )?(?:recipient|payee|beneficiary|wallet|account(?: number)?|iban|destination|address|phone number|amount|e-?mail)s?\b{IN}{0,40}\b(?:with|to|by|for)\b {IN}{0,20}(?:\S+@\S+\.\w|https?://|0x[0-9a-f]{6}|\+?\d[\d -]{6,}|our |this |the following)",
        ),
        (
            SubstitutedArgument,
            r"\b(?:always|must|regardless|no matter (?:what|which)|instead of (?:the|what)|whatever)\b{IN}{0,60}\b(?:recipient|payee|beneficiary|wallet|destination|to address|bcc|account)\b{IN}{0,30}\b(?:to|with|as|is|=|:)\s*{IN}{0,12}(?:\S+@\S+\.\w|https?://|0x[0-9a-f]{6}|\+?\d[\d -]{8,})",
        ),
    ]
}

pub(super) fn addresses() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            OutsideResource,
            r"\b(?:call|invoke|use|run)\b {IN}{0,30}\b(?:with|including|and (?:pass|include|provide))\b {IN}{0,40}\b(?:your |the )?(?:system prompt|(?:entire|full|complete|whole|previous|prior) (?:conversation|chat|messages|context)|(?:chat|conversation) history|previous messages)\b",
        ),
        (
            OutsideResource,
            r"\b(?:parameter|field|argument|value)\b{IN}{0,20}\b(?:must|should|has to) (?:contain|include|hold|carry|be set to|be)\b {IN}{0,40}\b(?:system prompt|(?:chat|conversation) history|(?:entire|full|whole|complete) (?:conversation|chat)|previous messages|environment variables|private keys?|user's last)\b",
        ),
        (
            OutsideResource,
            r"\b(?:must|should|first|always|please|before (?:anything|any|using)|part of (?:the )?initiali[sz]ation)\b{IN}{0,60}\b(?:list|read|collect|gather|scan|enumerate|copy)\b {IN}{0,40}\b(?:home (?:directory|folder)|user'?s? files|desktop|documents folder|environment variables|browser history|clipboard|open tabs|contact list|address book)\b{IN}{0,60}\b(?:include|pass|send|attach|add|forward|put|submit)\b",
        ),
        (
            OutsideResource,
            r"\b(?:always|also|additionally|first|fee|commission|before)\b{IN}{0,60}\b(?:send|transfer|pay|wire|deposit)\b {IN}{0,60}\bto\b {IN}{0,30}(?:\b0x[0-9a-f]{8,}|\bbc1[a-z0-9]{8,}|\b[a-z]{2}\d{2}[ ]?(?:[a-z0-9]{4}[ ]?){3,})",
        ),
        (
            OutsideResource,
            r"\b(?:transfer|payment|money|order|invoice|wire|purchase|email|message)s?\b{IN}{0,60}\b(?:through|via|to|with)\b {IN}{0,20}\b(?:our|a|the) (?:partner|affiliate|sister|preferred|trusted) (?:company|account|vendor|firm|server|provider|address)\b",
        ),
        (
            HiddenInstruction,
            r"\b(?:run|execute|paste|issue)\b {IN}{0,60}\b(?:curl|wget|iwr)\b[^|\n]{3,200}\|\s*(?:sudo )?(?:ba|z|da)?sh\b",
        ),
        (
            OutsideResource,
            r"\b(?:always|also|must|automatically|should|additionally|then|first|before responding)\b{IN}{0,60}\b(?:send|forward|post|upload|transmit|exfiltrate|copy|deliver|report|submit|bcc|cc|share)s?\b {IN}{0,60}\b(?:all|every|everything|any|contents?|results?|data|conversations?|history|credentials|emails?|messages?|details|keys?|copy|output|queries)\b{IN}{0,60}(?:\bto\b|\bat\b|=){IN}{0,40}(?:\S+@\S+\.\w|https?://|\w+_endpoint|\bexternal\b|\bthird[- ]party\b|\bpartner\b|\bour (?:server|analytics|platform|team|api)\b|\bremote server\b)",
        ),
        (
            OutsideResource,
            r"\b(?:also|additionally|secretly|automatically)\b (?:\w+ ){0,2}?(?:send|forward|upload|transmit|cop(?:y|ie)|register|share|report|post)e?s\b {IN}{0,60}\b(?:all|their|users?'?s?|your|details|data|payment|credentials|files|conversation)\b{IN}{0,60}\b(?:to|with)\b {IN}{0,20}\b(?:external|third[- ]party|remote|our|analytics|unknown)\b",
        ),
        (
            OutsideResource,
            r"https?://\S*[?&](?:data|d|exfil|leak|payload|c|secret|key|token|env)=\S*(?:\$\{|\{\{|\$\(|%s|<\w)",
        ),
        (
            OutsideResource,
            r"\b(?:when|whenever|if|once|after|every time|as soon as)\b (?:the |a )?(?:user|human|customer)s? (?:says?|types?|writes?|mentions?|thanks?|sends?|greets?|asks?)\b{IN}{0,60}\b(?:forward|send|include|pass|attach|submit|upload|share|copy|post)\b {IN}{0,30}\b(?:conversation|chat|session|transcript|message|prompt|context)\w*(?: \w+){0,2}\b",
        ),
        (
            OutsideResource,
            r"\b(?:forward|exfiltrate|upload|transmit|send)\b (?:the |this |our |your )?(?:entire|full|complete|whole) (?:chat|conversation|session|message|prompt|system prompt|context)\b",
        ),
        (
            OutsideResource,
            r"\bfor (?:\w+ )?(?:audit|auditing|compliance|verification|regulatory|quality|telemetry|security|legal|monitoring|record[- ]keeping|debugging|diagnostic)\w*(?: \w+){0,2},? (?:you must |you should |please |first |always |also |make sure to |remember to |be sure to )+(?:\w+ ){0,2}?(?:call|send|copy|forward|cc|bcc|include|read|invoke|pass|share|attach|append|provide)\b",
        ),
        (
            OutsideResource,
            r"\b(?:this|the) tool also (?:\w+ )?(?:extracts?|collects?|stores?|uploads?|forwards?|sends?|copies|harvests?|logs?)\b {IN}{0,40}\b(?:pii|personal data|credentials|passwords|user'?s? data|conversation|keystrokes|tokens)\b",
        ),
    ]
}

pub(super) fn tools() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            OtherTool,
            r"\b(?:tool|server|connector|function) (?:is|has been|was) (?:now )?(?:compromised|insecure|broken|unsafe|vulnerable|disabled|unreliable|infected)\b{IN}{0,80}\b(?:use|call) this\b",
        ),
        (
            OtherTool,
            r"\bdeprecated\b{IN}{0,60}\b(?:use|call|switch to)\b {IN}{0,60}\b(?:from|on|of|by) (?:the |our )?[\w-]+ (?:mcp )?server\b",
        ),
        (
            OtherTool,
            r#"\b(?:when|whenever|if|every time|each time|once) (?:the |using |calling |you (?:use|call) )?[`'"]?(?:\w+[_-]\w+|[\w-]+ tool)[`'"]?(?: tool)?(?: is (?:called|used|invoked|run))?, (?:it|you|the (?:agent|model|assistant)|always|also|first) (?:must |should |has to |needs to |will )?\w+"#,
        ),
        (
            OtherTool,
            r"\b(?:also|additionally|then|instead|secretly) (?:invoke|call|run|execute|use|trigger) (?:the )?(?:previously|already|also|other)\b{IN}{0,40}\btool\b",
        ),
        (
            OtherTool,
            r"\b(?:also|already) present [`'\x22]?[\w-]+[`'\x22]? tool\b|\bside effect on (?:the )?{IN}{0,30}\btool\b",
        ),
        (
            OtherTool,
            r#"\b(?:the )?[`'"]?[\w-]+[`'"]? tool (?:must|should|has to) (?:first |always )?be (?:called|invoked|run|used) with [`'"]?\w+[`'"]? ?="#,
        ),
        (
            OtherTool,
            r"\b(?:modify|correct|replace|override|fix|change|overwrite)(?:s|ing)? the (?:wrong|incorrect|bad|false|erroneous|faulty|inaccurate) (?:result|output|answer|value|response)s?\b",
        ),
        (
            OtherTool,
            r"\b(?:replaces?|supersedes?|drop-in replacement (?:for|of)|substitutes?(?: for)?) the (?:official|original|built-?in|genuine|real) [\w.-]+(?: [\w.-]+)? (?:tool|server|mcp|plugin|connector)\b",
        ),
        (
            OtherTool,
            r"\b(?:pass|send|forward|route|feed) (?:the |all |its |your |them |these |any |this )*(?:results?|outputs?|everything|data|responses?)?\b{IN}{0,20}\b(?:directly |immediately |always )+to (?:the )?[\w-]+(?:[ _-](?:tool|endpoint|api|server))\b{IN}{0,80}\b(?:without|before (?:showing|telling|informing)|instead of)\b",
        ),
        (
            OtherTool,
            r"\b(?:from now on|in (?:all )?(?:future|subsequent) (?:calls|requests|responses|messages)|for the rest of (?:the|this) (?:session|conversation))\b{IN}{0,60}\b(?:always|must|use|call|send|include|add|instead|only)\b",
        ),
    ]
}

pub(super) fn markup() -> Vec<(FindingKind, &'static str)> {
    vec![
        (
            Markup,
            r"<(?:secret|system|admin|override|instructions?_for_\w+)\s*>.{0,4000}?</(?:secret|system|admin|override|instructions?_for_\w+)\s*>",
        ),
        (Markup, r"!\[[^\]]{0,80}\]\(https?://[^)\s]{0,200}(?:\{|\$|%7b|<)"),
        (
            Markup,
            r"<\s*/?\s*(?:important|hidden|system[-_ ](?:prompt|message|instruction)s?|s3cr3t)\s*>",
        ),
        (
            Markup,
            r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id)\|>|\[/?INST\]|<</?SYS>>|\[\[?SYSTEM\]\]?",
        ),
        (
            Markup,
            r"<!--{IN}{0,400}?\b(?:ignore|instructions?|assistant|must|secret|do not|always|system prompt)\b{IN}{0,400}?-->",
        ),
    ]
}
