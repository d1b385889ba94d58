/**
 * Every rule that code, tests or documents cite stands in `docs/rules`: rulings, test rows, cases, and sections of the seeds.
 *
 * The first cell of a table row there is the rule's id: `ruling 28`, `RTY-08`, `C18`, `connector seed §4.7`.
 */
import type { Check, Violation } from "./report.ts"
import { codeTexts, documentTexts, lineOf, type Text } from "./texts.ts"

interface Citation {
  readonly id: string
  readonly at: number
}

/** It shows that a wrong citation is seen. */
const exempt = "test/packaging/house.test.ts"

export const citations: Check = (root) => {
  const documents = documentTexts(root)
  const ids = new Set(documents.filter(({ path }) => path.startsWith("docs/rules/")).flatMap(idsOf))
  const cited = [...codeTexts(root), ...documents]
    .filter(({ path }) => path !== exempt)
    .flatMap((text) => citationsIn(text).map((citation) => ({ text, ...citation })))
  return {
    violations: cited
      .filter(({ id }) => !ids.has(id))
      .map(
        ({ text, id, at }): Violation => ({
          file: text.path,
          line: lineOf(text.content, at),
          message: `docs/rules holds no '${id}'`
        })
      ),
    summary: `${cited.length} citations of ${new Set(cited.map(({ id }) => id)).size} rules; docs/rules holds ${ids.size}`
  }
}

const idsOf = ({ content }: Text): ReadonlyArray<string> =>
  [...content.matchAll(/^\| *([^|]+?) *\|/gm)].map(([, id]) => id!).filter((id) => /\d/.test(id))

const citationsIn = (text: Text): ReadonlyArray<Citation> => [
  ...rulings(text),
  ...rows(text),
  ...(isTestOrDocument(text) ? cases(text) : []),
  ...sections(text)
]

const isTestOrDocument = ({ path }: Text): boolean => path.endsWith(".test.ts") || path.endsWith(".md")

/** `ruling 5`, `rulings 5 and 7`, `rulings 30 to 32 and 61`, `rulings 14, 20 and 30`. */
const rulings = ({ content }: Text): ReadonlyArray<Citation> =>
  [...content.matchAll(/\b[Rr]ulings? (\d+(?:(?:, (?:and )?| and | to | or )\d+)*)/g)].flatMap(({ 1: list, index }) =>
    numbersOf(list!).map((number) => ({ id: `ruling ${number}`, at: index }))
  )

const numbersOf = (list: string): ReadonlyArray<number> =>
  list.split(/, (?:and )?| and | or /).flatMap((part) => {
    const [first = 0, last = first] = part.split(" to ").map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })

/** Standards that are written like a test row. */
const standards = new Set(["UTF", "SHA", "ISO", "RFC", "AES", "KIP"])

const rows = ({ content }: Text): ReadonlyArray<Citation> =>
  [...content.matchAll(/(?<![\w-])([A-Z]{2,4})(?:-[A-Z])?-\d{2}(?![\w-])/g)]
    .filter(([, prefix]) => !standards.has(prefix!))
    .map(({ 0: id, index }) => ({ id, at: index }))

const cases = ({ content }: Text): ReadonlyArray<Citation> =>
  [...content.matchAll(/(?<![\w-])C\d{2}(?![\w-])/g)].map(({ 0: id, index }) => ({ id, at: index }))

/** `connector seed §4.7`, `connector seed §4.1 and §4.3`. A section without its seed is no rule. */
const sections = ({ content }: Text): ReadonlyArray<Citation> => {
  const named = [
    ...content.matchAll(
      /\b([A-Za-z][a-z]+(?: consumer| handling)?) seed,?\s+(?:\* )?§[\d.]*\d(?:(?:,| and|, and)\s+(?:\* )?§[\d.]*\d)*/g
    )
  ]
  const found = named.flatMap(({ 0: text, 1: seed, index }) =>
    [...text.matchAll(/§[\d.]*\d/g)].map(({ 0: section, index: inside }) => ({
      id: `${seed!.toLowerCase()} seed ${section}`,
      at: index + inside
    }))
  )
  const offsets = new Set(found.map(({ at }) => at))
  const unnamed = [...content.matchAll(/§[\d.]*\d/g)]
    .filter(({ index }) => !offsets.has(index))
    .map(({ 0: section, index }) => ({ id: section, at: index }))
  return [...found, ...unnamed]
}
