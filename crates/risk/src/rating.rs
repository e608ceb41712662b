//! What a rating says. Stored as JSON beside the tool and shown on its page.

use serde::{Deserialize, Serialize};
use sluice_domain::{Category, Severity};

use crate::words::words;

words!(
    /// How sure the classifier is of the category.
    Confidence {
        High = "high",
        Medium = "medium",
        Low = "low",
        /// Nothing was recognised: treated as not safe, at least Write and Medium.
        Unknown = "unknown",
    }
);

words!(
    /// What kind of word decided.
    Cue {
        NameVerb = "verb in the name",
        NameNoun = "noun in the name",
        TitleVerb = "verb in the title",
        DescriptionVerb = "verb in the description",
        DescriptionPhrase = "phrase in the description",
        Parameter = "parameter",
        ParameterChoice = "choices of a parameter",
        Output = "output schema",
        Annotation = "annotation",
        /// No cue at all: rated as not safe.
        Nothing = "nothing recognised",
    }
);

words!(
    /// What the definition lets a caller do, said without judging it.
    Signal {
        FreeformCode = "accepts freeform code",
        Command = "accepts a command",
        RawSql = "accepts raw SQL",
        FilePath = "accepts a file system path",
        Url = "accepts a URL",
        Money = "moves an amount of money",
        Recipient = "names a recipient",
        Credentials = "handles credentials",
        MassOperation = "mass operation",
        OpenObject = "open-ended object",
        ManyParameters = "many parameters",
        NoSchema = "no input schema",
        PersonalData = "personal data",
    }
);

words!(
    /// What moves a severity away from its category's base.
    ModifierKind {
        ArbitraryCode = "arbitrary code",
        Secrets = "secrets",
        Bulk = "bulk",
        Force = "force",
        Overwrites = "overwrites",
        WritesFiles = "writes files",
        OutsideParties = "acts on outside parties",
        Money = "money",
        SensitiveData = "sensitive data",
        Access = "changes who has access",
        Irreversible = "cannot be undone",
        /// A claim: shown, never believed.
        Sandboxed = "sandboxed",
        /// Takes no text, code or address from the caller.
        FixedAction = "fixed action",
        Contradiction = "contradicts its annotations",
    }
);

words!(
    /// Which way a modifier pulls.
    Direction {
        Raises = "raises",
        Lowers = "lowers",
        /// Shown, but what it says is already in the category's base, or outweighed.
        None = "none",
    }
);

/// Words that decided, quoted, with where they stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub cue: Cue,
    /// `name`, `title`, `description`, `annotations.destructiveHint`, a parameter as `args.path` or a member of
    /// the answer as `output.deleted`.
    #[serde(rename = "where")]
    pub place: String,
    pub quote: String,
}

/// One thing beyond the category that bears on the severity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modifier {
    pub kind: ModifierKind,
    pub direction: Direction,
    #[serde(rename = "where")]
    pub place: String,
    pub quote: String,
}

impl Modifier {
    /// What it does to the severity, for people.
    pub const fn effect(&self) -> &'static str {
        match (self.direction, self.kind) {
            (Direction::Raises, _) => "raises the severity",
            (Direction::Lowers, _) => "lowers the severity",
            (Direction::None, ModifierKind::Sandboxed) => "a claim, shown and not believed",
            (Direction::None, ModifierKind::Contradiction) => {
                "the rest of the definition says otherwise"
            }
            (Direction::None, _) => {
                "moves nothing: the category means it, or a graver one outweighs it"
            }
        }
    }
}

/// What a tool does, how bad a wrong call can be, and why we say so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rating {
    pub category: Category,
    /// The category's base, moved at most one step by the modifiers.
    pub severity: Severity,
    /// The severity that the category alone means.
    pub base: Severity,
    pub confidence: Confidence,
    pub reasons: Vec<Reason>,
    pub modifiers: Vec<Modifier>,
    pub signals: Vec<Signal>,
}

impl Rating {
    /// Nothing was recognised, so the rating is the cautious default.
    pub fn is_unknown(&self) -> bool {
        self.confidence == Confidence::Unknown
    }
}
