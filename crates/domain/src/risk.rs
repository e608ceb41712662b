//! The words of the risk rating.

use crate::words::words;

words!(
    /// What a tool does to the world.
    Category, "category" {
        Read = "Read",
        Write = "Write",
        Execute = "Execute",
        Destructive = "Destructive",
        Financial = "Financial",
    }
);

words!(
    /// How bad a wrong call can be.
    Severity, "severity" {
        Low = "Low",
        Medium = "Medium",
        High = "High",
        Critical = "Critical",
    }
);

impl Category {
    /// The severity that the category alone means.
    pub const fn base_severity(self) -> Severity {
        match self {
            Self::Read => Severity::Low,
            Self::Write => Severity::Medium,
            Self::Execute => Severity::High,
            Self::Destructive | Self::Financial => Severity::Critical,
        }
    }
}
