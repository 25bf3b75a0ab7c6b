//! The tokenizer for the engine: it splits text into the words of [`query::words`].

use query::words::Words;
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};

pub(super) const EXACT: &str = "harvest_exact_1";

pub(super) fn register(tokenizers: &TokenizerManager) {
    tokenizers.register(EXACT, TextAnalyzer::builder(Exact::default()).build());
}

#[derive(Clone, Debug, Default)]
struct Exact {
    token: Token,
}

#[derive(Debug)]
struct Stream<'a> {
    words: Words<'a>,
    token: &'a mut Token,
}

impl Tokenizer for Exact {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        self.token.reset();
        Stream { words: Words::new(text), token: &mut self.token }
    }
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        let Some(span) = self.words.next_into(&mut self.token.text) else { return false };
        self.token.offset_from = span.start;
        self.token.offset_to = span.end;
        self.token.position = span.position;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use query::words::fold;
    use tantivy::tokenizer::{AsciiFoldingFilter, LowerCaser, RawTokenizer};

    use super::*;

    /// Returns whether we fold a character otherwise than the engine, which has no equivalents beyond
    /// ASCII. We leave out combining accents and invisible signs, so that a letter is the same however
    /// its accent is written, and find Greek and `ё` without accents too.
    fn is_ours(c: char) -> bool {
        matches!(c, '\u{300}'..='\u{36f}' | '\u{130}' | '\u{200b}'..='\u{200d}')
            || matches!(c, '\u{ad}' | '\u{2060}' | '\u{feff}')
            || matches!(c, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}')
            || "\u{401}\u{451}\u{400}\u{450}\u{40d}\u{45d}".contains(c)
    }

    #[test]
    fn folding_agrees_with_the_engine_for_all_other_characters() {
        let chain = TextAnalyzer::builder(RawTokenizer::default());
        let mut chain = chain.filter(LowerCaser).filter(AsciiFoldingFilter).build();
        for c in (char::MIN..=char::MAX).filter(|it| !is_ours(*it)) {
            let text = c.to_string();
            let mut stream = chain.token_stream(&text);
            assert_eq!(stream.next().unwrap().text, fold(&text), "{c:?}");
        }
        assert_eq!(fold("\u{395}\u{3bb}\u{3bb}\u{3ac}\u{3b4}\u{3b1} \u{401}"), "ελλαδα е");
    }
}
