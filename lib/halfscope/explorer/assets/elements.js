// Elements of the page, and words that several figures have.

const OUTCOMES = ["flushed", "subnormal", "overflow"];
const ROLES = { activation_gradient: "gradients of outputs", weight_gradient: "gradients of weights" };
const roleName = (role) => ROLES[role] ?? role.replaceAll("_", " ");

/** A loss scale as a number where that is short. */
const power = (exponent) => (exponent >= 0 && exponent <= 16 ? `${2 ** exponent}` : `2^${exponent}`);

// Control characters, and those that change the direction of writing or take no room.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g;
const visible = (text) => text.replace(HIDDEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** An element of HTML, or of SVG ("svg:rect"), with attributes, listeners (keys on...) and children. */
function element(kind, attributes = {}, ...children) {
  const name = kind.replace("svg:", "");
  const svg = kind !== name;
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const button = (words, onclick, attributes = {}) =>
  element("button", { type: "button", onclick, ...attributes }, words);

