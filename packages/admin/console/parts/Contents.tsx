/** The content of a record or of an event, for callers who may see it. */
import type { Content, Payload } from "../../src/DeadLetterAnswers.ts"
import { Section, Table } from "./layout.tsx"
import { MaskNote } from "./MaskNote.tsx"

/** As today's serde reads it, else as text, else its bytes. */
const shownOf = ({ decoded, text, base64, bytes }: Content): string => {
  if (decoded !== undefined) return typeof decoded === "string" ? decoded : JSON.stringify(decoded, null, 2)
  return text ?? (base64 === undefined ? (bytes === undefined ? "none" : "hidden") : `base 64: ${base64}`)
}

const Shown = ({ title, content }: { readonly title: string; readonly content: Content }) => (
  <>
    <h3>{title}</h3>
    {content.problem !== undefined && <p>Today's serde cannot read it: {content.problem}</p>}
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long text scrolls by keyboard */}
    <pre tabIndex={0}>{shownOf(content)}</pre>
  </>
)

export const Contents = ({ payload: { key, value, headers, mask } }: { readonly payload: Payload }) => (
  <Section title="Record">
    <MaskNote mask={mask} />
    <Shown title="Key" content={key} />
    <Shown title="Value" content={value} />
    <h3>Headers</h3>
    {headers.length === 0 ? (
      <p class="dim">None.</p>
    ) : (
      <Table
        label="Headers"
        rows={headers.map((header, index) => ({ ...header, index }))}
        keyOf={({ index }) => String(index)}
        columns={[
          { title: "Name", of: ({ name }) => name, isLong: true },
          { title: "Value", of: ({ value: text }) => text ?? "–", isLong: true }
        ]}
      />
    )}
  </Section>
)
