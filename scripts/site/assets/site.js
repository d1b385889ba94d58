// The behaviour of a page: the theme, the contents on narrow screens, and the search. Classic scripts, since a page opened from a disk may load no modules.
const root = document.documentElement

const stored = () => {
  try {
    return localStorage.getItem("theme")
  } catch {
    return null // storage is switched off
  }
}

const isDark = () =>
  (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark"

// Before anything is drawn: the page never flashes in the other theme.
root.dataset.script = ""
const theme = stored()
if (theme === "dark" || theme === "light") root.dataset.theme = theme

const setUpTheme = () => {
  const button = document.getElementById("theme")
  const name = () => {
    button.textContent = isDark() ? "Light" : "Dark"
  }
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark"
    try {
      localStorage.setItem("theme", root.dataset.theme)
    } catch {
      // The choice holds for this page.
    }
    name()
  })
  name()
}

const setUpMenu = () => {
  const button = document.getElementById("menu")
  button.addEventListener("click", () => {
    const isOpen = button.getAttribute("aria-expanded") === "true"
    button.setAttribute("aria-expanded", String(!isOpen))
  })
}

const loadScript = (path) =>
  new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = root.dataset.root + path
    script.onload = resolve
    script.onerror = () => reject(new Error(`${path} cannot be loaded`))
    document.head.append(script)
  })

let loading
/** The index, loaded once, when somebody begins to search. */
const loadIndex = () => {
  loading ??= Promise.all([loadScript("assets/minisearch.js"), loadScript("assets/search-index.js")]).then(() => {
    const { index, options } = globalThis.searchIndex
    return globalThis.MiniSearch.loadJS(index, options)
  })
  return loading
}

const maxResults = 12

const search = (index, text) =>
  index
    .search(text, {
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      combineWith: "AND",
      boost: { heading: 4, title: 3 },
      // A guide answers more questions than the page of a module or a rule.
      boostDocument: (_id, _term, { section }) => (section === "Reference" || section === "Understand" ? 0.5 : 1)
    })
    .slice(0, maxResults)

const resultItem = ({ heading, title, section, url }) => {
  const item = document.createElement("li")
  const link = document.createElement("a")
  link.href = root.dataset.root + url
  const name = document.createElement("strong")
  name.textContent = heading
  const place = document.createElement("span")
  place.textContent = ` ${section} · ${title}`
  link.append(name, place)
  item.append(link)
  return item
}

const setUpSearch = () => {
  const field = document.getElementById("search")
  const found = document.getElementById("found")
  const close = () => {
    found.hidden = true
  }
  const show = (results) => {
    const count = document.createElement("p")
    count.setAttribute("role", "status")
    count.textContent = results.length === 0 ? "Nothing found" : `${results.length} found; arrow keys choose`
    const list = document.createElement("ul")
    list.append(...results.map(resultItem))
    found.replaceChildren(count, ...(results.length === 0 ? [] : [list]))
    found.hidden = false
  }
  const update = async () => {
    const text = field.value.trim()
    if (text === "") return close()
    const index = await loadIndex()
    // Somebody may have typed on while the index came.
    if (field.value.trim() === text) show(search(index, text))
  }
  const links = () => [...found.querySelectorAll("a")]
  const step = (event) => {
    const all = links()
    const next = all.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)
    if (found.hidden || all.length === 0) return
    event.preventDefault()
    if (next < 0) field.focus()
    else all[Math.min(next, all.length - 1)].focus()
  }
  field.addEventListener("focus", () => loadIndex())
  field.addEventListener("input", update)
  field.form.addEventListener("submit", async (event) => {
    event.preventDefault()
    await update()
    links()[0]?.click()
  })
  field.form.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event)
    if (event.key === "Escape") {
      close()
      field.focus()
    }
  })
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return
    event.preventDefault()
    field.focus()
  })
  document.addEventListener("click", (event) => {
    if (!field.form.contains(event.target)) close()
  })
}

document.addEventListener("DOMContentLoaded", () => {
  setUpTheme()
  setUpMenu()
  setUpSearch()
})
