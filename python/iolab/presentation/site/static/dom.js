// Elements. Text is always text: nothing here, nor anywhere in these pages, makes markup of a string.

/**
 * An element: properties by name (`class`, `href`, `onclick`, any attribute), then children: nodes or texts.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node|string|number|null|undefined|false|Array<any>)} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same in SVG. @returns {any} */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "href" && !isInside(value)) continue;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Whether an address leads to these pages, or to a file that a page makes itself. */
function isInside(address) {
  return /^(#|api\/|blob:)/.test(address);
}

/** A heading with what stands below it. */
export function section(title, ...children) {
  const id = `s-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

/** Terms and their explanations. */
export function facts(pairs) {
  const rows = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Lines that a reader has to know. */
export function warnings(lines) {
  if (!lines.length) return null;
  return h("div", { class: "warnings", role: "note" }, h("b", {}, "Read with care"), h("ul", {}, lines.map((one) => h("li", {}, one))));
}
