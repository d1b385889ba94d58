/** Draws the console. */
import { render } from "preact"
import { App } from "./App.tsx"
import { takeToken } from "./data/api.ts"

takeToken()
const root = document.getElementById("root")
if (root !== null) render(<App />, root)
