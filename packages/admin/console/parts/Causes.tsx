/** The causes of a failure, the outermost first. */
import type { Letter } from "../../src/DeadLetterAnswers.ts"
import { Section } from "./layout.tsx"

export const Causes = ({ letter: { position, payload, exceptionMessage } }: { readonly letter: Letter }) => {
  const causes = payload?.causes ?? []
  if (causes.length === 0 && (exceptionMessage ?? "") === "") return null
  return (
    <Section title={`Why ${position} failed`}>
      {exceptionMessage !== undefined && exceptionMessage !== "" && <pre>{exceptionMessage}</pre>}
      {causes.length > 0 && (
        <ol>
          {causes.map(({ exceptionClass, message }, index) => (
            <li key={index}>
              <strong>{exceptionClass}</strong> {message}
            </li>
          ))}
        </ol>
      )}
    </Section>
  )
}
