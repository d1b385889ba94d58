/** A person who has no mouse. */
import type { Page } from "playwright-core"

/** The name of the element that has the focus, as a reader of the screen says it. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(`(() => {
    const element = document.activeElement
    return (element?.getAttribute("aria-label") ?? element?.labels?.[0]?.textContent ?? element?.textContent ?? "").trim()
  })()`)

/** Presses Tab until an element of this name has the focus. Throws when none gets it. */
export const tabTo = async (page: Page, name: string | RegExp): Promise<void> => {
  const met: Array<string> = []
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press("Tab")
    const text = await focused(page)
    if (typeof name === "string" ? text === name : name.test(text)) return
    met.push(text)
  }
  throw new Error(`Tab does not lead to ${name}, but to ${JSON.stringify(met)}`)
}

export const press = async (page: Page, name: string | RegExp): Promise<void> => {
  await tabTo(page, name)
  await page.keyboard.press("Enter")
}

/** Types in place of what a field has. */
export const fill = async (page: Page, name: string | RegExp, text: string): Promise<void> => {
  await tabTo(page, name)
  await page.keyboard.press("ControlOrMeta+a")
  await page.keyboard.type(text)
}
