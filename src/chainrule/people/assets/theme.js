(function(){var b=document.getElementById('theme');if(!b)return;b.onclick=function(){var r=document.documentElement;
var d=r.dataset.theme?r.dataset.theme==='dark':matchMedia('(prefers-color-scheme:dark)').matches;r.dataset.theme=d?'light':'dark'}})();
