//! The body of an invocation.
#![no_main]

use codeworkspace_agentcore::tools::{Contents, ToolCall, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match parse(bytes) {
    Err(error) => {
        assert!(!error.message().is_empty());
        assert!(error.field_list().len() <= 20);
        assert!(serde_json::to_string(&error).is_ok());
    }
    Ok(call) => {
        // Neither an escape nor base64 becomes longer than it was.
        let length = match &call {
            ToolCall::WriteFiles { files } => files
                .iter()
                .map(|file| file.path.len() + contents(&file.contents))
                .sum(),
            ToolCall::ReadFiles { paths } | ToolCall::RemoveFiles { paths } => {
                paths.iter().map(|path| path.len()).sum()
            }
            ToolCall::ExecuteCode(code) => code.code.len(),
            _ => 0,
        };
        assert!(length <= bytes.len());
    }
});

fn contents(contents: &Contents<'_>) -> usize {
    contents.as_bytes().len()
}
