/**
 * Names that this project once had for concepts with a standard name. None of them comes back into code, comments, messages or documents.
 *
 * A pattern is as narrow as it takes to leave plain English alone: `in flight` and `in place` are words of Kafka and of everybody.
 */
import type { Check, Violation } from "./report.ts"
import { codeTexts, documentTexts, lineOf, type Text } from "./texts.ts"

interface Word {
  readonly pattern: RegExp
  readonly instead: string
  /** Paths that it is looked for in. Default: everywhere. */
  readonly within?: RegExp
}

const words: ReadonlyArray<Word> = [
  { pattern: /\bPlaces?\b/, instead: "ConcurrencySlots, RecordPosition or SourceLocation" },
  {
    pattern: /\bplaces\b|\b(?:a|its|their|the) place (?:back|is free|of `?maxInFlight)\b/,
    instead: "concurrency slot",
    // A decimal of AMQP has `places`.
    within: /^(?!packages\/rabbitmq\/)/
  },
  { pattern: /\bTurn\b|\b(?:its|a|one's) turn\b/, instead: "concurrency slot, or what happens in order" },
  { pattern: /\bHeld\b/, instead: "SlotLease, or what the thing is" },
  { pattern: /\b[Oo]ff[ -]?[Tt]he[ -]?[Cc]lock\b/, instead: "paused clock" },
  { pattern: /\b[Oo]utstanding\b|\b[Bb]oarding\b/, instead: "pending copies" },
  { pattern: /(?<!\b(?:in|mid)[ -]|In|in)\b[Ff]lights?\b/, instead: "batch, or in flight" },
  { pattern: /(?:: |<|type |interface )Handling\b|\bhandling\.\w/, instead: "ConsumerContext, reportSettled" },
  { pattern: /\b(?:type|interface) Settled\b/, instead: "DeliveryResult" },
  { pattern: /\bStory\b/, instead: "DeliveryResult", within: /^packages\/(?!examples\/)/ },
  { pattern: /\b[Bb]ookkeeping\b/, instead: "retry state, or plain variables" },
  { pattern: /\botherHeaders\b|\b[Ss]limmer\b/, instead: "headerSets, trimmedHeaders" },
  {
    pattern: /\b[Aa]ssessments?\b|\b[Oo]utlooks?\b|\bthe watch\b|\bwatch\.ts\b/,
    instead: "health, cluster status, lag poller"
  },
  { pattern: /\b[Tt]roubles?\b/, instead: "failure" },
  { pattern: /\b[Bb]udgetWatch\b/, instead: "handler timeouts" },
  { pattern: /\brights\b|\bRights?\b|\bRightsMissing\b/, instead: "ACLs, RequiredAcl, AclsMissing" },
  { pattern: /\b[Ff]lood(?:s|ed)?\b/, instead: "log rate limit, or many" },
  { pattern: /\b[Pp]atience\b/, instead: "retry backoff, or a timeout" },
  { pattern: /\b[Tt]imepieces?\b/, instead: "clocks" },
  { pattern: /\bhalts\.hold\b/, instead: "isStillHalted" },
  { pattern: /\blet(?:s|ting)? go\b/, instead: "release, resume" },
  { pattern: /\bsettlement\W.*\b(?:Refused|Unfinished)\b/, instead: "HeldByBreaker, Abandoned" },
  { pattern: /\bListed\b|\bNotNamed\b|\bWanted\b/, instead: "ListedDeadLetter, BindingLookupError, SchemaRequest" },
  { pattern: /\bNOOP\b|(?<!_)\bGLOBAL\b/, instead: "noop, anyAggregateType" },
  { pattern: /\b[Oo]rphan(?:s|ed)?\b/, instead: "abandoned members" },
  { pattern: /\bbus\.hops\b/, instead: "bus.deliverySteps" }
]

/** The list itself, and what shows that it is looked for. */
const exempt = new Set(["scripts/house/words.ts", "test/packaging/house.test.ts"])

/** Pages for users of a former version name what they have to replace. */
const upgradePage = /^docs\/releases\/upgrade-/

export const privateWords: Check = (root) => {
  const texts = [...codeTexts(root), ...documentTexts(root)].filter(
    ({ path }) => !exempt.has(path) && !upgradePage.test(path)
  )
  return {
    violations: texts.flatMap(wordsIn),
    summary: `${words.length} patterns in ${texts.length} files`
  }
}

const wordsIn = (text: Text): ReadonlyArray<Violation> =>
  words
    .filter(({ within }) => within === undefined || within.test(text.path))
    .flatMap(({ pattern, instead }) =>
      [...text.content.matchAll(new RegExp(pattern, "g"))].map(({ 0: word, index }) => ({
        file: text.path,
        line: lineOf(text.content, index),
        message: `'${word}': say ${instead}`
      }))
    )
