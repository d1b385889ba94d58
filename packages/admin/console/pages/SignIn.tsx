/** Asks for a token, or for the name of a binding where the token is not for all of them. */
import { useState } from "preact/hooks"
import { type Refusal, token } from "../data/api.ts"
import { go, to } from "../data/route.ts"
import { Problem, Title } from "../parts/layout.tsx"

interface Props {
  readonly refusal: Refusal | undefined
  readonly begin: (token: string) => void
}

const titleOf = (refusal: Refusal | undefined): string => {
  if (refusal?.tag === "Forbidden") return "Not all bindings are yours"
  return refusal?.tag === "LoopbackOnly" ? "Not from here" : "Sign in"
}

export const SignIn = ({ refusal, begin }: Props) => {
  const [value, setValue] = useState("")
  const [binding, setBinding] = useState("")
  const isKnown = refusal?.tag === "Forbidden"
  const isRetry = token.read() !== ""
  return (
    <>
      <Title name="Sign in">{titleOf(refusal)}</Title>
      {(isRetry || refusal?.status === 403) && <Problem refusal={refusal} />}
      {isKnown && (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            go(to.binding(binding.includes(":") ? binding : `default:${binding}`))
          }}
        >
          <label for="binding">Name of a binding</label>
          <input id="binding" required value={binding} onInput={(event) => setBinding(event.currentTarget.value)} />
          <p class="buttons">
            <button type="submit" class="first">
              Open
            </button>
          </p>
        </form>
      )}
      {refusal?.tag !== "LoopbackOnly" && (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            begin(value.trim())
          }}
        >
          <label for="token">Token of the admin API</label>
          <input
            id="token"
            type="password"
            required
            autocomplete="current-password"
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
          <p class="dim">It is kept in this tab alone, and forgotten when the tab closes.</p>
          <p class="buttons">
            <button type="submit" class="first">
              Sign in
            </button>
          </p>
        </form>
      )}
    </>
  )
}
