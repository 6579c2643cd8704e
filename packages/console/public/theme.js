// Sets the theme before the first paint, so that it does not flash. A file of its own: the page's content
// security policy permits no inline script.
let theme = null;
try {
  theme = localStorage.getItem('toolgate.theme');
} catch {
  // Storage may be blocked; then the system's theme is used.
}
if (theme !== 'light' && theme !== 'dark')
  theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
document.documentElement.dataset.theme = theme;
