//! Prints where fancy-regex finds matches. A line of the input is an expression and texts, a line of
//! the output the first and last byte of each match by text. Texts are in hexadecimal, with tabs between.

use fancy_regex::Regex;
use std::io::{self, BufRead, Write};

fn text_of(hex: &str) -> String {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    String::from_utf8((0..hex.len()).step_by(2).map(byte).collect()).unwrap()
}

fn matches(regex: &Regex, text: &str) -> Option<String> {
    let mut found = vec![];
    for each in regex.find_iter(text) {
        let each = each.ok()?;
        found.push(format!("{}-{}", each.start(), each.end()));
    }
    Some(found.join(" "))
}

fn main() {
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut texts = line.split('\t').map(text_of);
        let expression = texts.next().unwrap();
        let found = Regex::new(&expression).ok().and_then(|regex| {
            texts.map(|text| matches(&regex, &text)).collect::<Option<Vec<_>>>()
        });
        println!("{}", found.map_or("refused".into(), |each| each.join("\t")));
        io::stdout().flush().unwrap();
    }
}
