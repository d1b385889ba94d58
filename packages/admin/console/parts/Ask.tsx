/** A button that asks before it does something. */
import type { ComponentChildren } from "preact"
import { useId, useRef, useState } from "preact/hooks"
import { useChange } from "../data/hooks.ts"
import { Problem } from "./layout.tsx"

interface AskProps {
  /** On the button, and on the one that confirms. */
  readonly verb: string
  readonly question: string
  readonly children?: ComponentChildren
  /** Whether it asks why, and gives the answer to `act`. */
  readonly asksWhy?: boolean
  readonly isDanger?: boolean
  readonly act: (reason: string) => Promise<void>
}

/** The dialog of the browser keeps the focus inside, gives it back, and closes by Escape. */
export const Ask = ({ verb, question, children, asksWhy = false, isDanger = false, act }: AskProps) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const [reason, setReason] = useState("")
  const { isBusy, refusal, run } = useChange()
  const id = useId()
  const close = () => dialog.current?.close()
  const submit = (event: Event) => {
    event.preventDefault()
    run(async () => {
      await act(reason.trim())
      close()
      setReason("")
    })
  }
  return (
    <>
      <button type="button" class={isDanger ? "danger" : ""} onClick={() => dialog.current?.showModal()}>
        {verb}
      </button>
      <dialog ref={dialog} aria-labelledby={`${id}-question`}>
        <form onSubmit={submit}>
          <h2 id={`${id}-question`}>{question}</h2>
          {children}
          {asksWhy && (
            <>
              <label for={`${id}-reason`}>Reason</label>
              <input
                id={`${id}-reason`}
                value={reason}
                required
                pattern=".*\S.*"
                maxLength={500}
                autocomplete="off"
                onInput={(event) => setReason(event.currentTarget.value)}
              />
            </>
          )}
          <Problem refusal={refusal} />
          <p class="buttons">
            <button type="submit" class={isDanger ? "danger" : "first"} disabled={isBusy}>
              {isBusy ? "Working…" : verb}
            </button>
            <button type="button" onClick={close}>
              Leave it
            </button>
          </p>
        </form>
      </dialog>
    </>
  )
}
