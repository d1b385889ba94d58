/** Says aloud, to readers of the screen, what a change led to. */
import { useEffect, useState } from "preact/hooks"

let hear: ((text: string) => void) | undefined

export const announce = (text: string): void => hear?.(text)

/** The live region, once on the page. */
export const Announcements = () => {
  const [text, setText] = useState("")
  useEffect(() => {
    hear = setText
    return () => {
      hear = undefined
    }
  }, [])
  return (
    <p class="hidden" role="status" aria-live="polite">
      {text}
    </p>
  )
}
